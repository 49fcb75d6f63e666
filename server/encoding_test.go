package server_test

import (
	"bytes"
	"compress/gzip"
	"compress/zlib"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/ingotml/ingot/internal/limits"
	"github.com/ingotml/ingot/server"
	"github.com/klauspost/compress/zstd"
)

// compress applies content codings in order.
func compress(t *testing.T, text string, names ...string) string {
	t.Helper()
	for _, name := range names {
		var b bytes.Buffer
		var w io.WriteCloser
		switch strings.ToLower(name) {
		case "gzip", "x-gzip":
			w = gzip.NewWriter(&b)
		case "deflate":
			w = zlib.NewWriter(&b)
		case "zstd":
			z, err := zstd.NewWriter(&b)
			if err != nil {
				t.Fatal(err)
			}
			w = z
		default:
			continue
		}
		if _, err := io.WriteString(w, text); err != nil {
			t.Fatal(err)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		text = b.String()
	}
	return text
}

// wideFrame is a zstd frame that needs a window of 16 MiB.
func wideFrame(t *testing.T) string {
	t.Helper()
	var b bytes.Buffer
	w, err := zstd.NewWriter(&b, zstd.WithWindowSize(16<<20), zstd.WithSingleSegment(false))
	if err != nil {
		t.Fatal(err)
	}
	for range 2 { // more than one write, so that the frame does not say its size
		if _, err := io.WriteString(w, strings.Repeat(" ", 20<<20)); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// Compressed bodies are decompressed in all APIs, within the limits of plain ones. Other codings are refused by name.
func TestCompressedBodies(t *testing.T) {
	f := serve(t, func(o *server.Options) { o.MaxBody = 1 << 20 })
	for path, body := range map[string]string{
		"/v1/responses":        `{"model":"talk","input":"Hi"}`,
		"/v1/chat/completions": `{"model":"talk","messages":[{"role":"user","content":"Hi"}]}`,
		"/v1/messages":         `{"model":"talk","max_tokens":9,"messages":[{"role":"user","content":"Hi"}]}`,
		"/api/chat":            `{"model":"talk","stream":false,"messages":[{"role":"user","content":"Hi"}]}`,
	} {
		for _, codings := range []string{"gzip", "x-gzip", "GZIP", "zstd", "deflate", "identity", "zstd, gzip",
			"gzip,zstd", " gzip , identity"} {
			names := strings.FieldsFunc(codings, func(r rune) bool { return strings.ContainsRune(" ,", r) })
			status, text := f.Ask(t, "POST", path, compress(t, body, names...), "Content-Encoding", codings)
			if status != 200 || !strings.Contains(text, "Hello") {
				t.Errorf("%s, %s: status %d: %s", path, codings, status, text)
			}
		}
	}
	before := heap()
	show := `{"model":"talk"}`
	big := strings.Repeat(" ", 64<<20)
	nothing := strings.Repeat(compress(t, "", "gzip"), 1<<17)
	whole := compress(t, show+strings.Repeat(" ", 1000), "gzip")
	for name, c := range map[string]struct {
		codings, body string
		status        int
		want          string
	}{
		"brotli":            {"br", show, 415, "br is not supported: use deflate, gzip, x-gzip, zstd, or none"},
		"two, one unknown":  {"gzip, br", show, 415, "Content-Encoding br is not supported"},
		"hostile name":      {strings.Repeat("x", 5000), show, 415, "xxx... is not supported"},
		"at most two":       {"gzip, gzip, gzip", show, 415, "3 codings, at most 2 are allowed"},
		"gzip bomb":         {"gzip", compress(t, big, "gzip"), 413, "exceeds 1048576 bytes"},
		"zstd bomb":         {"zstd", compress(t, big, "zstd"), 413, "exceeds 1048576 bytes"},
		"deflate bomb":      {"deflate", compress(t, big, "deflate"), 413, "exceeds 1048576 bytes"},
		"bomb in a bomb":    {"gzip, gzip", compress(t, big, "gzip", "gzip"), 413, "exceeds 1048576 bytes"},
		"bomb of nothing":   {"gzip, gzip", compress(t, nothing, "gzip"), 413, "exceeds 1048576 bytes"},
		"wide window":       {"zstd", wideFrame(t), 400, fmt.Sprintf("a window of more than %d bytes", limits.BodyWindow)},
		"not gzip":          {"gzip", show, 400, "the body is not valid gzip"},
		"not zstd":          {"zstd", show, 400, "the body is not valid zstd"},
		"cut off":           {"gzip", whole[:len(whole)-9], 400, "the gzip body ends too early"},
		"cut off at once":   {"gzip", whole[:3], 400, "the gzip body ends too early"},
		"wrong checksum":    {"gzip", whole[:len(whole)-8] + "12345678", 400, "the body is not valid gzip"},
		"nothing inside":    {"gzip", compress(t, "", "gzip"), 400, "no body"},
		"type of the field": {"zstd", compress(t, `{"model":5}`, "zstd"), 400, "model: a JSON number 5, want a string"},
	} {
		status, text := f.Ask(t, "POST", "/api/show", c.body, "Content-Encoding", c.codings)
		if status != c.status || !strings.Contains(text, c.want) || len(text) > 300 {
			t.Errorf("%s: status %d, want %d: %.300s", name, status, c.status, text)
		}
	}
	f.unharmed(t, before)
	file := "/api/blobs/sha256:" + strings.Repeat("0", 64)
	if status, text := f.Ask(t, "POST", file, compress(t, "x", "gzip"), "Content-Encoding", "gzip"); status != 415 ||
		!strings.Contains(text, "not supported for files") {
		t.Errorf("an upload: status %d: %s", status, text)
	}
}

// A refusal says in its header which codings are accepted, in the form of each API.
func TestRefusedCoding(t *testing.T) {
	f := serve(t, nil)
	for path, want := range map[string]string{"/api/chat": `{"error":"`, "/v1/responses": `"type":"invalid_request_error"`,
		"/v1/messages": `{"type":"error","error":{"type":"invalid_request_error"`} {
		r, err := http.NewRequestWithContext(t.Context(), "POST", f.URL+path, strings.NewReader("{}"))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Encoding", "br")
		response, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(response.Body)
		response.Body.Close()
		if err != nil || response.StatusCode != 415 || !strings.Contains(string(text), want) ||
			response.Header.Get("Accept-Encoding") != "deflate, gzip, x-gzip, zstd" {
			t.Errorf("%s: %d, %v: %s, %v", path, response.StatusCode, response.Header, text, err)
		}
	}
}

// The memory of decoders counts: bodies that are slow to come cannot take more than all bodies may.
func TestDecodersCount(t *testing.T) {
	f := serveMute(t, nil)
	_, limit := f.HeldBodies()
	f.SetMemoryWait(50*time.Millisecond, time.Hour)
	const decoder = limits.BodyWindow + 2<<20
	most := int(limit / (limits.ClientShare + 1) * limits.ClientShare / decoder)
	for range most {
		conn := f.Dial(t)
		fmt.Fprint(conn, "POST /api/show HTTP/1.1\r\nHost: localhost\r\n"+
			"Content-Encoding: zstd\r\nContent-Length: 100\r\n\r\n")
	}
	for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		if held, _ := f.HeldBodies(); held == int64(most)*decoder {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("the decoders are not counted")
		}
	}
	f.Has(t, "POST", "/api/show", `{"model":"talk"}`, 200)
	if status, text := f.Ask(t, "POST", "/api/show", compress(t, `{"model":"talk"}`, "zstd"), "Content-Encoding",
		"zstd"); status != 429 {
		t.Errorf("one more: status %d: %s", status, text)
	}
}
