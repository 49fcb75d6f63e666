package ollama

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ingotml/ingot/internal/limits"
	"github.com/ingotml/ingot/manifest/store/collect"
	"github.com/ingotml/ingot/server/servertest"
	"github.com/opencontainers/go-digest"
)

// slowBlob is an upload of unknown length that a client sends in pieces.
type slowBlob struct {
	net.Conn
	r *bufio.Reader
}

// beginBlob sends the header of a chunked upload. It returns when the server starts to read the body.
func (f *fixture) beginBlob(t *testing.T, d string) slowBlob {
	t.Helper()
	b := slowBlob{Conn: f.Dial(t)}
	b.r = bufio.NewReader(b)
	fmt.Fprintf(b,
		"POST /api/blobs/%s HTTP/1.1\r\nHost: localhost\r\nExpect: 100-continue\r\nTransfer-Encoding: chunked\r\n\r\n", d)
	if line, err := b.r.ReadString('\n'); err != nil || !strings.Contains(line, " 100 ") {
		t.Fatalf("the response starts with %q, %v", line, err)
	}
	if _, err := b.r.ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	return b
}

// send sends a piece.
func (b slowBlob) send(text string) { fmt.Fprintf(b, "%x\r\n%s\r\n", len(text), text) }

// response reads the response. The caller has sent the end of the file, unless the server responded before.
func (b slowBlob) response(t *testing.T) (status int, body string, header http.Header) {
	t.Helper()
	_ = b.SetReadDeadline(time.Now().Add(time.Minute))
	response, err := http.ReadResponse(b.r, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, string(text), response.Header
}

// TestSlowBlobAgainstPrune: prune does not wait for a slow upload and does not delete it.
func TestSlowBlobAgainstPrune(t *testing.T) {
	f := serve(t, nil)
	config, err := os.ReadFile(filepath.Join(servertest.Root(t), "testdata", "models", "demo", "config.json"))
	if err != nil {
		t.Fatal(err)
	}
	config = append(config, ' ') // makes the content new: the original is a blob of the models
	d := digest.FromBytes(config).String()
	slow := f.beginBlob(t, d)
	slow.send(string(config[:100]))
	for _, o := range []collect.PruneOptions{{DryRun: true}, {}, {Unfinished: true}} {
		if _, err := collect.Prune(t.Context(), f.Options().Store, o); err != nil {
			t.Fatalf("prune %+v during a slow upload: %v", o, err)
		}
	}
	slow.send(string(config[100:]))
	slow.send("")
	if status, text, _ := slow.response(t); status != 201 {
		t.Fatalf("status %d: %s", status, text)
	}
	files := f.upload(t, "demo")
	original := digest.FromBytes(config[:len(config)-1]).String()
	f.Has(t, "POST", "/api/create", `{"model":"made","stream":false,"files":`+strings.ReplaceAll(files, original, d)+`}`,
		200, "success")
	if got := f.left(t, "sending-*"); len(got) > 0 {
		t.Errorf("remaining files: %v", got)
	}
}

// TestUploadsAtOnce: an upload beyond the limit gets a 503, and other requests are served.
func TestUploadsAtOnce(t *testing.T) {
	f := serve(t, nil)
	var slow []slowBlob
	for i := range limits.UploadsAtOnce {
		slow = append(slow, f.beginBlob(t, digest.FromString(fmt.Sprint(i)).String()))
	}
	r, err := http.Post(f.URL+"/api/blobs/"+digest.FromString("late").String(), "", strings.NewReader("late"))
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	text, _ := io.ReadAll(r.Body)
	if r.StatusCode != 503 || r.Header.Get("Retry-After") == "" ||
		!strings.Contains(string(text), fmt.Sprint(limits.UploadsAtOnce)) {
		t.Errorf("upload beyond the limit: status %d, %v: %s", r.StatusCode, r.Header, text)
	}
	f.Has(t, "GET", "/healthz", "", 200)
	slow[0].send("0")
	slow[0].send("")
	if status, text, _ := slow[0].response(t); status != 201 {
		t.Errorf("first upload: status %d: %s", status, text)
	}
	f.Has(t, "POST", "/api/blobs/"+digest.FromString("late").String(), "late", 201)
}
