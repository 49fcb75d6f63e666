package main

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"time"
)

// startRegistry runs an empty registry on a free port. stop ends it and removes its data.
func (b *bench) startRegistry(ctx context.Context) (stop func(), host string, err error) {
	root, err := os.MkdirTemp(b.dir, "registry-")
	if err != nil {
		return nil, "", err
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, "", err
	}
	host = l.Addr().String()
	l.Close()
	file := filepath.Join(root, "config.yml")
	text := fmt.Sprintf(`version: 0.1
log: {level: error, accesslog: {disabled: true}}
storage: {filesystem: {rootdirectory: %s}}
http: {addr: %q, secret: bench}
`, filepath.Join(root, "data"), host)
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		return nil, "", err
	}
	var log bytes.Buffer
	p := exec.CommandContext(ctx, b.registry, "serve", file)
	p.Env = []string{"HOME=" + root, "OTEL_TRACES_EXPORTER=none"}
	p.Stdout, p.Stderr = &log, &log
	if err := p.Start(); err != nil {
		return nil, "", err
	}
	stop = func() {
		p.Process.Kill()
		p.Wait()
		os.RemoveAll(root)
	}
	for range 100 {
		if resp, err := http.Get("http://" + host + "/v2/"); err == nil {
			resp.Body.Close()
			return stop, host, nil
		}
		time.Sleep(50 * time.Millisecond)
	}
	stop()
	return nil, "", fmt.Errorf("docker-registry does not answer on %s:\n%s", host, log.String())
}
