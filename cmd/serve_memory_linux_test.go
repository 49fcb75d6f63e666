package cmd_test

import (
	"bytes"
	"cmp"
	"compress/zlib"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ingotml/ingot/internal/limits/runtest"
)

// serverMemory is the memory limit of the server and its models' processes in TestServeMemory.
const serverMemory = 2 << 30

var memoryGroups atomic.Int64

// memoryGroup creates a control group of either version with a memory limit, and returns its file of processes, or why
// the system allows none.
func memoryGroup(t *testing.T, limit int64) (procs string, missing error) {
	t.Helper()
	own, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		t.Fatal(err)
	}
	type place struct{ folder, file string }
	var places []place
	for line := range strings.Lines(string(own)) {
		parts := strings.SplitN(strings.TrimSpace(line), ":", 3)
		switch {
		case len(parts) != 3:
		case parts[0] == "0":
			places = append(places, place{filepath.Join("/sys/fs/cgroup", parts[2]), "memory.max"})
		case parts[1] == "memory":
			places = append(places, place{filepath.Join("/sys/fs/cgroup/memory", parts[2]), "memory.limit_in_bytes"})
		}
	}
	for _, p := range places {
		dir := filepath.Join(p.folder, fmt.Sprintf("ingot-test-%d-%d", os.Getpid(), memoryGroups.Add(1)))
		err = os.Mkdir(dir, 0o755)
		if err == nil {
			t.Cleanup(func() { // its processes have ended, but the kernel may not have noticed
				for range 100 {
					if err = os.Remove(dir); err == nil {
						return
					}
					time.Sleep(50 * time.Millisecond)
				}
				t.Error(err)
			})
			if err = os.WriteFile(filepath.Join(dir, p.file), []byte(strconv.FormatInt(limit, 10)), 0); err == nil {
				t.Logf("the processes are in %s, with %s", dir, p.file)
				return filepath.Join(dir, "cgroup.procs"), nil
			}
		}
	}
	return "", fmt.Errorf("no control group can limit the memory of a process: %w",
		cmp.Or(err, errors.New("this process is in none that has a limit")))
}

// largePNG returns a 24-bit picture of 8192 x 8192 pixels of one color, without its end.
func largePNG(t *testing.T) []byte {
	t.Helper()
	const side = 8192
	head := binary.BigEndian.AppendUint32(nil, side)
	head = append(binary.BigEndian.AppendUint32(head, side), 8, 2, 0, 0, 0)
	var data bytes.Buffer
	z := zlib.NewWriter(&data)
	line := make([]byte, 1+3*side)
	for range side {
		if _, err := z.Write(line); err != nil {
			t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return append(append([]byte("\x89PNG\r\n\x1a\n"), pngChunk("IHDR", head)...), pngChunk("IDAT", data.Bytes())...)
}

func pngChunk(kind string, data []byte) []byte {
	b := binary.BigEndian.AppendUint32(nil, uint32(len(data)))
	b = append(append(b, kind...), data...)
	return binary.BigEndian.AppendUint32(b, crc32.ChecksumIEEE(b[4:]))
}

// numbered completes a picture and makes it unique.
func numbered(png []byte, n int) string {
	b := append(bytes.Clone(png), pngChunk("tEXt", fmt.Appendf(nil, "Title\x00%d", n))...)
	return base64.StdEncoding.EncodeToString(append(b, pngChunk("IEND", nil)...))
}

// pictureRequest returns a request with pictures for the model "sees", for one of the paths that accept them.
func pictureRequest(i int, pictures []string) (path, body string) {
	content := func(format string) string {
		list := make([]string, len(pictures))
		for j, p := range pictures {
			list[j] = fmt.Sprintf(format, p)
		}
		return "[" + strings.Join(list, ",") + "]"
	}
	ollama := `"messages":[{"role":"user","content":"x","images":` + content("%q") + `}]`
	anthropic := `"messages":[{"role":"user","content":` +
		content(`{"type":"image","source":{"type":"base64","media_type":"image/png","data":%q}}`) + `}]`
	openai := func(format string) string {
		return `[{"role":"user","content":` + content(format) + `}]`
	}
	requests := []struct{ path, body string }{
		{"/api/chat", `{"model":"sees",` + ollama + `,"stream":false,"options":{"num_predict":1}}`},
		{"/v1/tokenize", `{"model":"sees",` + ollama + `}`},
		{"/v1/messages/count_tokens", `{"model":"sees",` + anthropic + `}`},
		{"/v1/chat/completions", `{"model":"sees","max_tokens":1,"messages":` +
			openai(`{"type":"image_url","image_url":{"url":"data:image/png;base64,%s"}}`) + `}`},
		{"/v1/messages", `{"model":"sees","max_tokens":1,` + anthropic + `}`},
		{"/v1/responses", `{"model":"sees","max_output_tokens":1,"input":` +
			openai(`{"type":"input_image","image_url":"data:image/png;base64,%s"}`) + `}`},
		{"/api/generate", `{"model":"sees","prompt":"x","images":` + content("%q") +
			`,"stream":false,"options":{"num_predict":1}}`},
	}
	r := requests[i%len(requests)]
	return r.path, r.body
}

// renderRequest returns a request whose template produces a text at the limit or beyond.
func renderRequest(i int) string {
	template, prompt := `{% for m in messages %}{{ 'x' * 60000000 }}{% endfor %}`, "x"
	switch i % 4 {
	case 1: // within the limits
		template = `{% for m in messages %}{% for i in range(10) %}{{ 'x' * 100000 }}{% endfor %}{% endfor %}`
	case 2: // a long output
		template = `{% for m in messages %}{{ m.content }}{{ m.content }}{{ m.content }}{{ m.content }}{% endfor %}`
		prompt = strings.Repeat("x", 1<<20)
	case 3: // memory that does not show in the output
		template = `{% for m in messages %}{% set x = ('x' * 400000000) | upper %}{{ x | length }}{% endfor %}`
	}
	return fmt.Sprintf(`{"model":"demo","prompt":%q,"template":%q,"stream":false,"options":{"num_predict":1}}`, prompt,
		template)
}

// TestServeMemory checks that a server under a memory limit survives many expensive templates and large pictures at
// once, and keeps responding. A long run has 30 renders and 20 requests of eight pictures each.
func TestServeMemory(t *testing.T) {
	if runtest.Race {
		t.Skip("the race detector multiplies memory by 5 to 10: make test and make soak run this without it")
	}
	renders, requests, each := 8, 3, 8
	if runtest.Long() {
		renders, requests, each = 30, 20, 8
	}
	needEngine(t)
	home := filepath.Join(t.TempDir(), "store")
	for name, of := range map[string]string{"demo": "demo", "other": "demo", "sees": "qwen3_5-vision"} {
		ingot(t, home, "create", name, filepath.Join("..", "testdata", "models", of))
	}
	group, missing := memoryGroup(t, serverMemory)
	if missing != nil {
		t.Logf("only the peaks of processes are checked: %v", missing)
	}
	s := serveIn(t, home, group, nil)
	for _, name := range []string{"demo", "other", "sees"} {
		s.whole(t, "/api/generate", fmt.Sprintf(`{"model":%q}`, name))
	}
	children := s.children(t)
	png := largePNG(t)
	var wg sync.WaitGroup
	var mu sync.Mutex
	statuses := map[string]int{}
	send := func(path, body string) {
		wg.Go(func() {
			response, err := http.Post("http://"+s.addr+path, "application/json", strings.NewReader(body))
			if err != nil {
				t.Errorf("%s: %v", path, err)
				return
			}
			defer response.Body.Close()
			text, err := io.ReadAll(response.Body)
			busy := response.StatusCode == 503 || response.StatusCode == 529
			switch code := response.StatusCode; {
			case err != nil, code != 200 && !busy && (code < 400 || code > 499),
				busy && response.Header.Get("Retry-After") == "":
				t.Errorf("%s: status %d, Retry-After %q, %v: %.300s", path, code, response.Header.Get("Retry-After"), err, text)
			}
			mu.Lock()
			statuses[fmt.Sprintf("%s %d", path, response.StatusCode)]++
			mu.Unlock()
		})
	}
	for i := range renders {
		send("/api/generate", renderRequest(i))
	}
	for i := range requests {
		pictures := make([]string, each)
		for j := range pictures {
			pictures[j] = numbered(png, i*each+j)
		}
		if i == 0 && requests < 20 {
			pictures = pictures[:1] // the short form shows only one to a model
		}
		send(pictureRequest(i, pictures))
	}
	done := make(chan struct{})
	go func() { wg.Wait(); close(done) }()
	answered := 0
	for over := false; !over; {
		select {
		case <-done:
			over = true
		default:
		}
		response := s.post(t, "/api/generate", fmt.Sprintf(strings.Replace(story, "demo", "other", 1), 2, "~"))
		last := lastLine(t, response.Body)
		response.Body.Close()
		switch {
		case last["done"] == true:
			answered++
		case response.StatusCode != 503 || response.Header.Get("Retry-After") == "":
			t.Fatalf("a request under load: status %d: %v", response.StatusCode, last)
		}
	}
	if answered < 2 {
		t.Errorf("%d others were answered", answered)
	}
	check := map[string]int{"the server": s.Process.Pid}
	for name, pid := range children {
		check[name] = pid
	}
	for name, pid := range check {
		if !running(pid) {
			t.Errorf("%s has exited: %s", name, s.errs)
			continue
		}
		most := peak(t, pid)
		t.Logf("%s: peak of %d MB", name, most>>20)
		if most > serverMemory {
			t.Errorf("%s: peak of %d bytes", name, most)
		}
	}
	t.Logf("answers: %v; others meanwhile: %d", statuses, answered)
	if statuses["/api/chat 200"] == 0 || statuses["/v1/tokenize 200"] == 0 ||
		statuses["/v1/messages/count_tokens 200"] == 0 {
		t.Errorf("pictures were not counted or processed: %v", statuses)
	}
}
