package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

type options struct {
	ingot, store, image string
	clients             int
	length              time.Duration
}

// served is a running server.
type served struct {
	url     string
	process *exec.Cmd
}

// start starts a server and waits until it responds.
func start(ctx context.Context, o options) (*served, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	addr := l.Addr().String()
	l.Close()
	c := exec.CommandContext(ctx, o.ingot, "serve", "--quiet", "--host", addr, "--keep-alive", "1h", "--cache-size",
		"64MB")
	c.Cancel = func() error { return c.Process.Signal(os.Interrupt) }
	c.WaitDelay = 20 * time.Second
	c.Env = append(os.Environ(), "INGOT_HOME="+o.store)
	c.Stderr = os.Stderr
	if err := c.Start(); err != nil {
		return nil, err
	}
	s := &served{"http://" + addr, c}
	for range 200 {
		if r, err := http.Get(s.url + "/healthz"); err == nil {
			r.Body.Close()
			if r.StatusCode == http.StatusOK {
				return s, nil
			}
		}
		time.Sleep(50 * time.Millisecond)
	}
	s.stop()
	return nil, errors.New("the server does not answer")
}

func (s *served) stop() {
	_ = s.process.Process.Signal(os.Interrupt)
	_ = s.process.Wait()
}

// pids lists the server's process and its model processes.
func (s *served) pids() []int {
	own := s.process.Process.Pid
	list := []int{own}
	tasks, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", own))
	for _, path := range tasks {
		b, _ := os.ReadFile(path)
		for _, f := range strings.Fields(string(b)) {
			if n, err := strconv.Atoi(f); err == nil {
				list = append(list, n)
			}
		}
	}
	return list
}

// files counts the open files of all processes; 0 if the system does not report them.
func (s *served) files() (n int) {
	for _, pid := range s.pids() {
		entries, _ := os.ReadDir(fmt.Sprintf("/proc/%d/fd", pid))
		n += len(entries)
	}
	return n
}

// memory is the anonymous memory of all processes in MB; 0 if the system does not report it.
func (s *served) memory() (mb int) {
	for _, pid := range s.pids() {
		b, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
		for line := range strings.Lines(string(b)) {
			if f := strings.Fields(line); len(f) > 1 && f[0] == "RssAnon:" {
				kb, _ := strconv.Atoi(f[1])
				mb += kb / 1000
			}
		}
	}
	return mb
}

// left counts running and waiting requests of a model.
func (s *served) left(image string) (int, error) {
	r, err := http.Get(s.url + "/metrics")
	if err != nil {
		return 0, err
	}
	defer r.Body.Close()
	var text strings.Builder
	if err := copyTo(&text, r.Body); err != nil {
		return 0, err
	}
	n := 0
	for line := range strings.Lines(text.String()) {
		for _, name := range []string{"ingot_batch_requests{", "ingot_queue_requests{", "ingot_model_requests{"} {
			if f := strings.Fields(line); strings.HasPrefix(line, name) && len(f) == 2 {
				v, err := strconv.ParseFloat(f[1], 64)
				if err != nil {
					return 0, fmt.Errorf("metrics: %q", line)
				}
				n += int(v)
			}
		}
	}
	return n, nil
}

// piece is one line of a streamed response.
type piece struct {
	Response string `json:"response"`
	Done     bool   `json:"done"`
	Reason   string `json:"done_reason"`
	Error    string `json:"error"`
	Stats    struct {
		Prompt int `json:"prompt_tokens"`
		Cached int `json:"cached_tokens"`
		Tokens int `json:"tokens"`
	} `json:"stats"`
}

// question is a request's body.
type question struct {
	Model   string         `json:"model"`
	Prompt  string         `json:"prompt"`
	Raw     bool           `json:"raw"`
	Options map[string]any `json:"options"`
}

func (q question) body() string {
	b, _ := json.Marshal(q) // strings and numbers always marshal
	return string(b)
}
