package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// server is a server of the benchmark's, whose memory is watched.
type server struct {
	*exec.Cmd
	address string
	log     string
	ended   chan struct{}
	watched sync.WaitGroup

	mu   sync.Mutex
	most int64  // memory so far
	why  string // it was killed
}

// start starts a server and waits until it responds.
func (b *bench) start(ctx context.Context) (*server, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	s := &server{address: l.Addr().String(), log: filepath.Join(b.dir, "log"), ended: make(chan struct{})}
	l.Close()
	log, err := os.Create(s.log)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	s.Cmd = exec.CommandContext(ctx, b.ingot, "serve", "--host", s.address, "--queue", "1000")
	s.Env, s.Stdout, s.Stderr = b.environment(), log, log
	if err := s.Start(); err != nil {
		return nil, err
	}
	go func() {
		defer close(s.ended)
		_ = s.Wait()
	}()
	s.watched.Go(func() { s.watch(b.limit) })
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		if r, err := http.Get("http://" + s.address + "/healthz"); err == nil {
			r.Body.Close()
			return s, nil
		}
		if !s.alive() {
			break
		}
	}
	s.stop()
	text, _ := os.ReadFile(s.log)
	return nil, fmt.Errorf("the server does not start: %s", text)
}

// stop ends the server.
func (s *server) stop() {
	_ = s.Process.Signal(os.Interrupt)
	select {
	case <-s.ended:
	case <-time.After(20 * time.Second):
		_ = s.Process.Kill()
		<-s.ended
	}
	s.watched.Wait()
}

func (s *server) alive() bool {
	select {
	case <-s.ended:
		return false
	default:
		return true
	}
}

// watch measures memory until the server ends, and kills it if it needs more than the limit.
func (s *server) watch(limit int64) {
	for {
		now := s.memory()
		s.mu.Lock()
		s.most = max(s.most, now)
		if now > limit && s.why == "" {
			s.why = fmt.Sprintf("(killed: %d MiB of memory)", now>>20)
			_ = s.Process.Kill()
		}
		s.mu.Unlock()
		select {
		case <-s.ended:
			return
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// peak returns the most memory so far.
func (s *server) peak() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.most
}

// died says which process has ended, or "".
func (s *server) died(models []int) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.why != "":
		return s.why
	case !s.alive():
		text, _ := os.ReadFile(s.log)
		return fmt.Sprintf("(the server ended: %.2000s)", text)
	}
	now := s.children()
	for _, pid := range models {
		if !slices.Contains(now, pid) {
			return "(a model's process ended)"
		}
	}
	return ""
}

// memory returns the resident memory of the server and its models.
func (s *server) memory() int64 {
	total := resident(s.Process.Pid)
	for _, pid := range s.children() {
		total += resident(pid)
	}
	return total
}

// children returns the processes that the server has started.
func (s *server) children() (list []int) {
	files, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", s.Process.Pid))
	for _, file := range files {
		b, err := os.ReadFile(file)
		if err != nil {
			continue // the thread has ended
		}
		for _, word := range strings.Fields(string(b)) {
			if pid, err := strconv.Atoi(word); err == nil {
				list = append(list, pid)
			}
		}
	}
	return list
}

// resident returns the resident memory of a process, or 0 if it has ended.
func resident(pid int) int64 {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", pid))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return 0
	}
	words := strings.Fields(string(b))
	if len(words) < 2 {
		return 0
	}
	pages, err := strconv.ParseInt(words[1], 10, 64)
	if err != nil {
		return 0
	}
	return pages * int64(os.Getpagesize())
}
