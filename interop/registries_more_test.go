package interop

import (
	"fmt"
	"net"
	"path/filepath"
	"testing"
)

// startDistribution3 runs distribution's registry of release 3.
func startDistribution3(t *testing.T) string {
	t.Helper()
	return startRegistry(t, "registry", func(dir, host string) []string {
		file := filepath.Join(dir, "config.yml")
		writeFile(t, file, distributionConfig(dir, host))
		return []string{"serve", file}
	})
}

// startCrane runs go-containerregistry's registry.
func startCrane(t *testing.T) string {
	t.Helper()
	return startRegistry(t, "crane", func(dir, host string) []string {
		return []string{"registry", "serve", "--address", host, "--disk", dir}
	})
}

// startZot runs zot without its extensions. It accepts docker's media types, those of Ollama's manifests, only if told.
func startZot(t *testing.T) string {
	t.Helper()
	return startRegistry(t, "zot", func(dir, host string) []string {
		address, port, err := net.SplitHostPort(host)
		if err != nil {
			t.Fatal(err)
		}
		file := filepath.Join(dir, "config.json")
		writeFile(t, file, fmt.Sprintf(`{"distSpecVersion": "1.1.1", "storage": {"rootDirectory": %q},
			"http": {"address": %q, "port": %q, "compat": ["docker2s2"]}, "log": {"level": "error"}}`,
			filepath.Join(dir, "root"), address, port))
		return []string{"serve", file}
	})
}

// startNginx runs nginx before a registry. A request's body may have at most limit bytes, written as nginx does; its
// own default is 1m. A longer one gets a 413, and nginx closes the connection.
func startNginx(t *testing.T, registry, limit string) string {
	t.Helper()
	return startRegistry(t, "nginx", func(dir, host string) []string {
		file := filepath.Join(dir, "nginx.conf")
		writeFile(t, file, fmt.Sprintf(`daemon off;
master_process off;
pid %[1]s/pid;
error_log stderr crit;
events {}
http {
  access_log off;
  client_body_temp_path %[1]s/body;
  proxy_temp_path %[1]s/proxy;
  fastcgi_temp_path %[1]s/fastcgi;
  uwsgi_temp_path %[1]s/uwsgi;
  scgi_temp_path %[1]s/scgi;
  server {
    listen %[2]s;
    client_max_body_size %[3]s;
    location / {
      proxy_pass http://%[4]s;
      proxy_set_header Host $http_host;
    }
  }
}
`, dir, host, limit, registry))
		return []string{"-p", dir, "-c", file}
	})
}
