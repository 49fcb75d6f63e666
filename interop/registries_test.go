package interop

import (
	"bytes"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/olareg/olareg"
	"github.com/olareg/olareg/config"
)

// registry is a kind of registry.
type registry struct {
	name  string
	when  func() bool // nil: always
	start func(t *testing.T) string
}

// registries are the registries of eachRegistry.
var registries = []registry{
	{"olareg", nil, func(t *testing.T) string { return startOlareg(t, true) }},
	{"olareg-without-referrers", nil, func(t *testing.T) string { return startOlareg(t, false) }},
	{"distribution", nil, func(t *testing.T) string { return startDistribution(t, "") }},
	{"distribution-3", long, startDistribution3},
	{"crane", long, startCrane},
	{"nginx-1MiB", long, func(t *testing.T) string { return startNginx(t, startDistribution(t, ""), "1m") }},
	{"nginx-20MiB", long, func(t *testing.T) string { return startNginx(t, startDistribution(t, ""), "20m") }},
	{"zot", byHand, startZot},
}

// long is the long form of the tests.
func long() bool { return !testing.Short() }

// byHand tells whether there are programs that setup.sh cannot install; see programs.
func byHand() bool { return programs() != "" }

// eachRegistry runs a test against each kind of registry. host includes a port.
func eachRegistry(t *testing.T, test func(t *testing.T, host string)) {
	for _, r := range registries {
		if r.when == nil || r.when() {
			t.Run(r.name, func(t *testing.T) { test(t, r.start(t)) })
		}
	}
}

// startOlareg runs olareg in this process and returns its address.
func startOlareg(t *testing.T, referrers bool) string {
	t.Helper()
	deletes := true
	o := olareg.New(config.Config{
		Storage: config.ConfigStorage{StoreType: config.StoreMem},
		API:     config.ConfigAPI{DeleteEnabled: &deletes, Referrer: config.ConfigAPIReferrer{Enabled: &referrers}},
	})
	s := httptest.NewServer(o)
	t.Cleanup(func() {
		s.Close()
		o.Close()
	})
	return s.Listener.Addr().String()
}

// startDistribution runs Debian's docker-registry on a free port and waits until it responds. auth is the auth section
// of its configuration.
func startDistribution(t *testing.T, auth string) string {
	t.Helper()
	return startRegistry(t, "docker-registry", func(dir, host string) []string {
		file := filepath.Join(dir, "config.yml")
		writeFile(t, file, distributionConfig(dir, host)+auth)
		return []string{"serve", file}
	})
}

// distributionConfig returns the configuration of a distribution, of release 2 or 3.
func distributionConfig(dir, host string) string {
	return fmt.Sprintf(`version: 0.1
log: {level: warn, accesslog: {disabled: true}}
storage:
  filesystem: {rootdirectory: %s}
  delete: {enabled: true}
http: {addr: %q, secret: interop}
`, filepath.Join(dir, "root"), host)
}

// startRegistry runs a registry on a free port and waits until it responds. configure returns its arguments.
func startRegistry(t *testing.T, name string, configure func(dir, host string) []string) string {
	t.Helper()
	program := tool(t, name)
	for attempt := 0; ; attempt++ {
		dir, host := t.TempDir(), freeAddress(t)
		logged, err := tryRegistry(t, dir, host, program, configure(dir, host)...)
		if err == nil {
			return host
		}
		if attempt == 3 { // another process may have taken the port
			t.Fatalf("%s: %v\n%s", name, err, logged)
		}
	}
}

func tryRegistry(t *testing.T, dir, host, program string, args ...string) (logged string, err error) {
	var log bytes.Buffer
	c := exec.Command(program, args...)
	c.Env = []string{"HOME=" + dir, "OTEL_TRACES_EXPORTER=none"}
	c.Stdout, c.Stderr = &log, &log
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- c.Wait() }()
	stop := func() {
		c.Process.Kill()
		done <- <-done
	}
	for range 100 {
		resp, err := http.Get("http://" + host + "/v2/")
		if err == nil {
			resp.Body.Close()
			t.Cleanup(stop)
			return "", nil
		}
		select {
		case err := <-done:
			return log.String(), err
		case <-time.After(100 * time.Millisecond):
		}
	}
	stop()
	return log.String(), fmt.Errorf("no response within 10 s")
}

func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// get fetches a URL of a registry without credentials.
func get(t *testing.T, url string, header ...string) (*http.Response, []byte) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	var b bytes.Buffer
	if _, err := b.ReadFrom(resp.Body); err != nil {
		t.Fatal(err)
	}
	return resp, b.Bytes()
}

// repository returns the URL of a name's repository and its tag: http://HOST/v2/PATH and TAG for HOST/PATH:TAG.
func repository(t *testing.T, name string) (url, tag string) {
	t.Helper()
	host, rest, ok := strings.Cut(name, "/")
	path, tag, tagged := strings.Cut(rest, ":")
	if !ok || !tagged {
		t.Fatalf("%s is not HOST/PATH:TAG", name)
	}
	return "http://" + host + "/v2/" + path, tag
}
