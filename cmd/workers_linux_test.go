package cmd_test

import (
	"bufio"
	"bytes"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/ingotml/ingot/worker/tunnel"
)

// workerProcess is a worker on this machine or in a network namespace.
type workerProcess struct {
	*exec.Cmd
	addr string // on which it listens
	errs *lockedBuffer
}

// startWorker starts a worker. prefix is the command that starts it, such as `ip netns exec`.
func startWorker(t *testing.T, home, token, listen string, prefix ...string) *workerProcess {
	t.Helper()
	c := command(home, "worker", "--listen", listen, "--token-file", token)
	if len(prefix) > 0 {
		path, err := exec.LookPath("ingot")
		if err != nil {
			t.Fatal(err)
		}
		c.Args = append(append(prefix, path), c.Args[1:]...)
		if c.Path, c.Err = exec.LookPath(prefix[0]); c.Err != nil {
			t.Fatal(c.Err)
		}
	}
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	w := &workerProcess{Cmd: c, errs: &lockedBuffer{}}
	pipe, err := c.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.end)
	r := bufio.NewReader(pipe)
	line, err := r.ReadString('\n')
	if err != nil || !strings.HasPrefix(line, "listening on ") {
		t.Fatalf("the worker printed %q, %v", line, err)
	}
	w.addr = strings.TrimSpace(strings.TrimPrefix(line, "listening on "))
	go func() { _, _ = io.Copy(w.errs, r) }()
	return w
}

func (w *workerProcess) end() {
	_ = w.Process.Kill()
	_ = w.Wait()
}

// logged waits until the worker's log has a text.
func (w *workerProcess) logged(t *testing.T, text string) {
	t.Helper()
	for deadline := time.Now().Add(15 * time.Second); !strings.Contains(w.errs.String(), text); {
		if time.Now().After(deadline) {
			t.Fatalf("the worker's log lacks %q:\n%s", text, w.errs)
		}
		time.Sleep(10 * time.Millisecond)
	}
}

func tokenFile(t *testing.T, token string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(name, []byte(token+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

const (
	workersPrompt  = `{"model":"demo","prompt":"The quick","raw":true,"options":{"temperature":0,"num_predict":12}}`
	workersEndless = `{"model":"demo","prompt":"The quick","raw":true,"options":{"temperature":0,"num_predict":900}}`
)

// text returns the response to a prompt, or the error.
func (s *served) text(t *testing.T, body string) string {
	t.Helper()
	response := s.post(t, "/api/generate", strings.Replace(body, "{", `{"stream":false,`, 1))
	defer response.Body.Close()
	last := lastLine(t, response.Body)
	if why, failed := last["error"].(string); failed {
		return "error: " + why
	}
	text, _ := last["response"].(string)
	return text
}

// broken sends a request, calls cut when its first token has come, and returns how it ended and how long after that.
func (s *served) broken(t *testing.T, cut func()) (string, time.Duration) {
	t.Helper()
	response, err := http.Post("http://"+s.addr+"/api/generate", "application/json", strings.NewReader(workersEndless))
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	r := bufio.NewReader(response.Body)
	if line, err := r.ReadString('\n'); err != nil || strings.Contains(line, `"error"`) {
		t.Fatalf("the first line is %q, %v", line, err)
	}
	cut()
	begun := time.Now()
	rest, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(string(rest)), "\n")
	return lines[len(lines)-1], time.Since(begun)
}

// failsIn checks that a request ends with an error that is about the group, in time.
func (s *served) failsIn(t *testing.T, what string, cut func()) {
	t.Helper()
	last, after := s.broken(t, cut)
	t.Logf("%s: %.1f s: %s", what, after.Seconds(), last)
	if !strings.Contains(last, `"error"`) || !strings.Contains(last, "group of ranks has ended") {
		t.Errorf("%s: the request ended with %s", what, last)
	}
	if after > 10*time.Second {
		t.Errorf("%s: the request ended after %v", what, after)
	}
}

// sockets returns the local ends of listening sockets and both ends of connections, without those on loopback, as text
// of /proc/net/tcp and tcp6 shows them.
func sockets(t *testing.T, read func(name string) []byte) (listening []string, ports map[int]bool) {
	t.Helper()
	ports = map[int]bool{}
	for _, name := range []string{"/proc/net/tcp", "/proc/net/tcp6"} {
		for _, line := range strings.Split(string(read(name)), "\n")[1:] {
			f := strings.Fields(line)
			if len(f) < 4 {
				continue
			}
			local, lport := socketEnd(t, f[1])
			remote, rport := socketEnd(t, f[2])
			switch {
			case local.IsLoopback():
			case f[3] == "0A":
				listening = append(listening, fmt.Sprintf("%s:%d", local, lport))
			case f[3] == "01" && !remote.IsLoopback():
				ports[min(lport, rport)] = true // the port of a worker is lower than those that the system chooses
			}
		}
	}
	return listening, ports
}

func socketEnd(t *testing.T, text string) (net.IP, int) {
	t.Helper()
	address, port, _ := strings.Cut(text, ":")
	b, err := hex.DecodeString(address)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i+4 <= len(b); i += 4 { // words in the machine's order
		b[i], b[i+1], b[i+2], b[i+3] = b[i+3], b[i+2], b[i+1], b[i]
	}
	n, err := strconv.ParseUint(port, 16, 16)
	if err != nil {
		t.Fatal(err)
	}
	return net.IP(b), int(n)
}

// A server and a worker compute what one machine does. A worker that is killed or stopped ends the requests with an
// error, and the group forms again when it is back.
func TestWorkers(t *testing.T) {
	t.Parallel() // it mostly waits
	token := tokenFile(t, strings.Repeat("token", 8))
	one := startServer(t, nil)
	want := one.text(t, workersPrompt)
	if want == "" || strings.HasPrefix(want, "error") {
		t.Fatalf("one machine says %q", want)
	}
	home := filepath.Join(t.TempDir(), "worker")
	w := startWorker(t, home, token, "127.0.0.1:0")
	s := serveStore(t, one.home, nil, "--workers", w.addr, "--token-file", token)
	if got := s.text(t, workersPrompt); got != want {
		t.Fatalf("two machines say %q, one %q\n%s\n%s", got, want, s.errs, w.errs)
	}
	w.logged(t, "fetched")
	if list := ingot(t, home, "ls"); strings.Contains(list, "demo") {
		t.Errorf("the worker's store lists a model of which it has a part:\n%s", list)
	}

	// A pipeline, and its plan.
	dry := command(one.home, "serve", "demo", "--workers", w.addr, "--token-file", token, "--dry-run", "--json",
		"--parallel", "pipeline")
	var plan struct {
		Mode   string
		Stages []int
		Ranks  []struct{ Weights, Memory int64 }
	}
	if out, err := dry.Output(); err != nil || json.Unmarshal(out, &plan) != nil || plan.Mode != "pipeline" ||
		len(plan.Stages) != 2 || len(plan.Ranks) != 2 || plan.Ranks[1].Weights == 0 || plan.Ranks[0].Memory == 0 {
		t.Errorf("--dry-run prints %s, %v: %s", out, err, w.errs)
	}
	staged := serveStore(t, one.home, nil, "--workers", w.addr, "--token-file", token, "--parallel", "pipeline")
	if got := staged.text(t, workersPrompt); got != want {
		t.Errorf("a pipeline says %q, one machine %q\n%s\n%s", got, want, staged.errs, w.errs)
	}
	_ = staged.Process.Signal(syscall.SIGTERM)
	_ = staged.Wait()

	ps := command(one.home, "ps", "-v")
	ps.Env = append(ps.Env, "INGOT_HOST="+s.addr)
	if out, err := ps.CombinedOutput(); err != nil || !strings.Contains(string(out), "; sent ") {
		t.Errorf("ps -v: %s, %v", out, err)
	}
	sent := regexp.MustCompile(`ingot_ring_bytes_total\{model="demo:latest",way="(?:sent|received)"\} [1-9]`)
	metrics, err := http.Get("http://" + s.addr + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	page, err := io.ReadAll(metrics.Body)
	metrics.Body.Close()
	if err != nil || len(sent.FindAll(page, -1)) != 2 {
		t.Errorf("/metrics has not the traffic of the ring: %v", err)
	}

	// Stopped: the connection stays open and silent.
	s.failsIn(t, "a stopped worker", func() { _ = w.Process.Signal(syscall.SIGSTOP) })
	_ = w.Process.Signal(syscall.SIGCONT)
	w.logged(t, "the rank's process")
	if got := s.text(t, workersPrompt); got != want {
		t.Errorf("after a stop: %q, want %q", got, want)
	}
	s.failsIn(t, "a killed worker", func() { w.end() })
	if got := s.text(t, workersPrompt); !strings.Contains(got, w.addr) || !strings.Contains(got, "connection refused") {
		t.Errorf("without the worker: %q", got)
	}
	w = startWorker(t, home, token, w.addr)
	if got := s.text(t, workersPrompt); got != want {
		t.Errorf("after a kill: %q, want %q", got, want)
	}
	if strings.Contains(w.errs.String(), "fetched") {
		t.Errorf("the parts were fetched again:\n%s", w.errs)
	}

	// Others are refused and logged.
	wrong := serveStore(t, one.home, nil, "--workers", w.addr, "--token-file", tokenFile(t, strings.Repeat("other", 8)))
	if got := wrong.text(t, workersPrompt); !strings.Contains(got, tunnel.ErrToken.Error()) {
		t.Errorf("with a wrong token: %q", got)
	}
	w.logged(t, tunnel.ErrToken.Error())
	secret, err := tunnel.NewToken(strings.Repeat("token", 8))
	if err != nil {
		t.Fatal(err)
	}
	old := tunnel.Self{Token: secret, Versions: tunnel.Versions{Program: "0.0.1", Engine: "MLX 0.1"}}
	if _, err := tunnel.Dial(t.Context(), w.addr, old, tunnel.Request{Purpose: "rank"}); err == nil ||
		!strings.Contains(err.Error(), "ingot 0.0.1") {
		t.Errorf("an old program: %v", err)
	}
	w.logged(t, "ingot 0.0.1")

	// Nothing is left behind.
	pid := s.children(t)["demo:latest"]
	if pid == 0 {
		pid = s.children(t)["demo"]
	}
	_ = s.Process.Signal(syscall.SIGTERM)
	_ = s.Wait()
	gone(t, pid)
	w.logged(t, "ended")
	if left, err := filepath.Glob(filepath.Join(s.temp, "*")); err != nil || len(left) > 0 {
		t.Errorf("files are left: %v, %v", left, err)
	}
}

// namespace makes a network namespace that a pair of devices connects to this one. It skips the test if the kernel
// forbids that. The devices have 10.213.N.1 here and 10.213.N.2 there.
func namespace(t *testing.T, n int) (name, here, there, device string) {
	t.Helper()
	name, device = fmt.Sprintf("ingot-%d-%d", os.Getpid(), n), fmt.Sprintf("ig%d.%d", os.Getpid()%100000, n)
	here, there = fmt.Sprintf("10.213.%d.1", n), fmt.Sprintf("10.213.%d.2", n)
	if out, err := exec.Command("ip", "netns", "add", name).CombinedOutput(); err != nil {
		t.Skipf("network namespaces need root and a kernel that allows them: %v %s", err, out)
	}
	t.Cleanup(func() { _ = exec.Command("ip", "netns", "del", name).Run() })
	for _, line := range []string{
		"link add " + device + " type veth peer name eth0 netns " + name,
		"addr add " + here + "/24 dev " + device, "link set " + device + " up",
		"-n " + name + " addr add " + there + "/24 dev eth0", "-n " + name + " link set eth0 up",
		"-n " + name + " link set lo up",
	} {
		if out, err := exec.Command("ip", strings.Fields(line)...).CombinedOutput(); err != nil {
			t.Skipf("ip %s: %v %s", line, err, out)
		}
	}
	t.Cleanup(func() { _ = exec.Command("ip", "link", "del", device).Run() })
	return name, here, there, device
}

// A worker behind a link of its own: the text is that of one machine, and nothing is reachable but the worker's port. A
// link that goes down ends the requests, and the group forms again.
func TestWorkersInNamespaces(t *testing.T) {
	t.Parallel()
	needEngine(t)
	name, _, there, device := namespace(t, 1)
	shape := exec.Command("tc", "qdisc", "add", "dev", device, "root", "netem", "delay", "1ms", "rate", "1gbit")
	if out, err := shape.CombinedOutput(); err != nil {
		t.Logf("the link is not shaped: %v %s", err, bytes.TrimSpace(out))
	}
	token := tokenFile(t, strings.Repeat("token", 8))
	one := startServer(t, nil)
	want := one.text(t, workersPrompt)
	w := startWorker(t, filepath.Join(t.TempDir(), "worker"), token, ":7710", "ip", "netns", "exec", name)
	s := serveStore(t, one.home, nil, "--workers", there, "--token-file", token)
	if got := s.text(t, workersPrompt); got != want || got == "" {
		t.Fatalf("two machines say %q, one %q\n%s\n%s", got, want, s.errs, w.errs)
	}
	listening, ports := sockets(t, func(file string) []byte {
		b, err := exec.Command("ip", "netns", "exec", name, "cat", file).Output()
		if err != nil {
			t.Fatal(err)
		}
		return b
	})
	if len(listening) != 1 || !strings.HasSuffix(listening[0], ":7710") {
		t.Errorf("the worker's machine listens on %v", listening)
	}
	if len(ports) != 1 || !ports[7710] {
		t.Errorf("the machines are connected by ports %v", ports)
	}
	link := func(to string) {
		if out, err := exec.Command("ip", "link", "set", device, to).CombinedOutput(); err != nil {
			t.Fatalf("%v %s", err, out)
		}
	}
	s.failsIn(t, "a link that is down", func() { link("down") })
	link("up")
	w.logged(t, "the rank's process")
	if got := s.text(t, workersPrompt); got != want {
		t.Errorf("after the link is up: %q, want %q", got, want)
	}
}
