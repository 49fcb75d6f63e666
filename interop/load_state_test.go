package interop

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"
	"strings"
	"time"
)

// resources are what a server and the process of one of its models hold.
type resources struct {
	memoryMB          int // anonymous, of both processes
	files, goroutines int
	requests          int // running and waiting
}

func (r resources) String() string {
	return fmt.Sprintf("%d MB, %d files, %d goroutines, %d requests", r.memoryMB, r.files, r.goroutines, r.requests)
}

// settle waits until an idle server has returned what it can, and returns what it holds. Models that the load unloads
// are stopped: each of their processes is another one.
func (l *load) settle() (r resources) {
	l.user.t.Helper()
	http.DefaultClient.CloseIdleConnections()
	for _, model := range []string{"muse", "sight"} {
		body := fmt.Sprintf(`{"model":%q,"keep_alive":0}`, model)
		if err := l.postText(l.user.t.Context(), "/api/generate", body, 200, ""); err != nil {
			l.user.t.Fatal(err)
		}
	}
	http.DefaultClient.CloseIdleConnections()
	time.Sleep(loadRest)
	child, _ := l.ps("story")
	for _, pid := range []int{l.pid, child} {
		status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
		if err != nil {
			l.user.t.Fatal(err)
		}
		for line := range strings.Lines(string(status)) {
			if f := strings.Fields(line); len(f) > 1 && f[0] == "RssAnon:" {
				kb, _ := strconv.Atoi(f[1])
				r.memoryMB += kb / 1000
			}
		}
		files, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", pid))
		if err != nil {
			l.user.t.Fatal(err)
		}
		r.files += len(files)
	}
	http.DefaultClient.CloseIdleConnections()
	response, err := http.Get(l.origin + "/metrics")
	if err != nil {
		l.user.t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		l.user.t.Fatal(err)
	}
	found := map[string]bool{}
	for line := range strings.Lines(string(text)) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), " ")
		name, _, _ = strings.Cut(name, "{")
		v, err := strconv.ParseFloat(value, 64)
		if err != nil {
			continue
		}
		switch found[name] = true; name {
		case "ingot_batch_requests", "ingot_queue_requests", "ingot_model_requests":
			r.requests += int(v)
		case "ingot_server_goroutines", "ingot_model_goroutines":
			r.goroutines += int(v)
		}
	}
	if !found["ingot_model_goroutines"] || !found["ingot_server_goroutines"] || !found["ingot_batch_requests"] {
		l.user.t.Fatal("metrics of the server or of the model are missing")
	}
	return r
}
