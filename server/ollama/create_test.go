package ollama

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/opencontainers/go-digest"

	"github.com/ingotml/ingot/internal/limits"
	"github.com/ingotml/ingot/server"
	"github.com/ingotml/ingot/server/servertest"
	"github.com/ingotml/ingot/server/wire"
)

// upload uploads a checkpoint's files and returns the JSON of their names and digests.
func (f *fixture) upload(t *testing.T, model string) string {
	t.Helper()
	return f.uploadFolder(t, "models/"+model, "Modelfile")
}

// uploadFolder is upload for a folder of testdata. It leaves one file out.
func (f *fixture) uploadFolder(t *testing.T, folder, without string) string {
	t.Helper()
	dir := filepath.Join(servertest.Root(t), "testdata", folder)
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{}
	for _, e := range entries {
		b, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		d := digest.FromBytes(b).String()
		if status, text := f.Ask(t, "POST", "/api/blobs/"+d, string(b)); status != 201 && status != 200 {
			t.Fatalf("%s: %d: %s", e.Name(), status, text)
		}
		if e.Name() != without {
			files[e.Name()] = d
		}
	}
	b, err := wire.Encode(files)
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(b))
}

// left returns the files in the store's folder for unfinished downloads and uploads.
func (f *fixture) left(t *testing.T, pattern string) []string {
	t.Helper()
	list, err := filepath.Glob(filepath.Join(f.Options().Store.Root(), "ingest", pattern))
	if err != nil {
		t.Fatal(err)
	}
	return list
}

func TestBlobs(t *testing.T) {
	f := serve(t, func(o *server.Options) { o.MaxBody = 10 })
	const text = "more bytes than other requests may have"
	d := digest.FromString(text).String()
	f.Has(t, "HEAD", "/api/blobs/"+d, "", 404)
	f.Has(t, "POST", "/api/blobs/"+d, text, 201)
	f.Has(t, "HEAD", "/api/blobs/"+d, "", 200)
	f.Has(t, "POST", "/api/blobs/"+d, text, 200)
	f.Has(t, "POST", "/api/blobs/"+digest.FromString("").String(), "", 201)
	f.Has(t, "POST", "/api/blobs/"+digest.FromString("other").String(), text, 400,
		`{"error":"digest mismatch, expected `)
	for _, bad := range []string{"sha256:1", "sha512:" + strings.Repeat("a", 128), "x", "sha256-" + d[7:],
		"sha256:..%2f..%2fetc"} {
		f.Has(t, "POST", "/api/blobs/"+bad, text, 400, "64 lower-case")
		f.Has(t, "HEAD", "/api/blobs/"+bad, "", 400)
	}
	f.Has(t, "GET", "/api/blobs/"+d, "", 405, "HEAD, POST")
	if got := f.left(t, "*"); len(got) != 2 {
		t.Errorf("remaining files: %v", got)
	}
}

// An upload that stalls is aborted and leaves no file. A slow upload is not aborted.
func TestSlowBlobs(t *testing.T) {
	f := serve(t, func(o *server.Options) { o.Timeout = 600 * time.Millisecond })
	text := strings.Repeat("x", 3*limits.UploadStep)
	d := digest.FromString(text).String()
	begin := func(d string, length int) net.Conn {
		conn := f.Dial(t)
		fmt.Fprintf(conn, "POST /api/blobs/%s HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: %d\r\n\r\n",
			d, length)
		return conn
	}
	responds := func(conn net.Conn, want string) {
		t.Helper()
		b := make([]byte, len("HTTP/1.1 000"))
		if _, err := conn.Read(b); err != nil || !strings.HasSuffix(string(b), want) {
			t.Errorf("response %q, %v, want %s", b, err, want)
		}
	}
	responds(begin("sha256:1", 100_000), "400") // the client sends nothing of the file
	responds(begin(d, math.MaxInt64), "507")
	conn := begin(d, len(text))
	fmt.Fprint(conn, text[:limits.UploadStep+1])
	responds(conn, "408")
	conn = begin(d, len(text))
	for rest := text; rest != ""; time.Sleep(150 * time.Millisecond) {
		n := min(len(rest), limits.UploadStep/2+1<<10)
		fmt.Fprint(conn, rest[:n])
		rest = rest[n:]
	}
	responds(conn, "201")
	if got := f.left(t, "*"); len(got) != 1 {
		t.Errorf("remaining files: %v", got)
	}
}

func TestCreate(t *testing.T) {
	f := serve(t, nil)
	files := f.upload(t, "demo")
	status, text := f.Ask(t, "POST", "/api/create", `{"model":"made","files":`+files+`}`)
	list := servertest.Lines(t, text)
	if last := list[len(list)-1]; status != 200 || last["status"] != "success" || len(list) < 2 {
		t.Fatalf("%d: %s", status, text)
	}
	_, plain := f.Ask(t, "POST", "/api/show", `{"model":"plain"}`)
	if digest := servertest.Lines(t, plain)[0]["digest"].(string); digest == "" {
		t.Error("no digest")
	} else {
		f.Has(t, "POST", "/api/show", `{"model":"made"}`, 200, digest)
	}
	f.Has(t, "POST", "/api/generate", `{"model":"made","prompt":"x","stream":false}`, 200, "Hello world")

	// Create other models from the same files.
	f.Has(t, "POST", "/api/create", `{"name":"small","files":`+files+`,"quantize":"q4","stream":false}`, 200,
		`{"status":"success"}`)
	f.Has(t, "POST", "/api/show", `{"model":"small"}`, 200, `"quantization_level":"int4"`)
	f.Has(t, "POST", "/api/create", `{"model":"dressed","from":"plain","stream":false,"system":"be brief",
		"template":"{% for m in messages %}{{ m.content }}{% endfor %}",
		"license":["one","two"],"parser":"qwen3","parameters":{"temperature":0.25,"top_k":7,"stop":["a","b\"c"],"seed":null},
		"messages":[{"role":"user","content":"Hi"},{"role":"assistant","content":"Hello"}]}`, 200, "success")
	f.Has(t, "POST", "/api/show", `{"model":"dressed"}`, 200, `"system":"be brief"`, `"license":"one\ntwo"`,
		`"parser":"qwen3"`, `temperature 0.25`, `top_k 7`, `stop \"b\\\"c\"`,
		`{"role":"assistant","content":"Hello"}`)
	f.Has(t, "POST", "/api/create", `{"model":"plain","from":"dressed","license":"three","stream":false}`, 200)
	if got := f.left(t, "files-*"); len(got) > 0 {
		t.Errorf("remaining files: %v", got)
	}

	dir := f.Options().Store.Root()
	one := func(name string) string {
		return fmt.Sprintf(`{"model":"x","files":{%q:"%s"}}`, name, digest.FromString("x"))
	}
	for body, want := range map[string]string{
		`{"model":"x"}`: "neither 'from' or 'files' was specified",
		`{"model":"x","from":"plain","files":` + files + `}`:                          "mutually exclusive",
		`{"model":"x","from":"plain","adapters":{"a.safetensors":"sha256:1"}}`:        `adapters: file \"a.safetensors`,
		`{"model":"x","from":"plain","draft_files":{"a/b":"sha256:1"}}`:               `draft_files: file \"a/b`,
		`{"model":"x","from":"plain","remote_host":"example.com"}`:                    "remote_host is not supported",
		`{"model":"x","from":"plain","draft_quantize":"q9"}`:                          "int4",
		`{"model":"x","modelfile":"FROM /etc"}`:                                       "not supported",
		`{"model":"x","path":"/etc/passwd"}`:                                          "not supported",
		`{"model":"x","from":"/etc"}`:                                                 "model name",
		`{"model":"x","from":"."}`:                                                    "model name",
		`{"model":"x","from":"` + dir + `"}`:                                          "model name",
		`{"model":"x/","from":"plain"}`:                                               "model name",
		`{"from":"plain"}`:                                                            "model is required",
		`{"model":"x@` + digest.FromString("").String() + `","from":"plain"}`:         "must not have a digest",
		`{"model":"x","from":"plain","quantize":"q4_K_M"}`:                            "int4",
		`{"model":"x","from":"plain","template":"{% if %}"}`:                          "template",
		`{"model":"x","from":"plain","parameters":{"warmth":1}}`:                      "warmth",
		`{"model":"x","from":"plain","parameters":{"temperature":"hot"}}`:             "hot",
		`{"model":"x","from":"plain","parameters":{"stop":{"a":1}}}`:                  "an object",
		`{"model":"x","from":"plain","parameters":{"stop":[["a"]]}}`:                  "list of lists",
		`{"model":"x","from":"plain","messages":[{"role":"tool","content":"x"}]}`:     `messages[0].role is \"tool\"`,
		`{"model":"x","from":"plain","messages":[{"role":"user","images":["AAAA"]}]}`: "cannot have pictures",
		`{"model":"x","files":{"config.json":"sha256:1"}}`:                            "64 lower-case",
		`{"model":"x","files":{"a":"` + digest.FromString("x").String() + `","A":"` + digest.FromString("x").String() +
			`"}}`: "differ only in case",
		one("config.json"):                  "POST /api/blobs/DIGEST",
		one("model.gguf"):                   "POST /api/blobs/DIGEST",
		one(""):                             "empty",
		one("../config.json"):               "a dot",
		one("/etc/passwd"):                  "contains",
		one("a/b"):                          "contains",
		one(`a\\b`):                         "contains",
		one(".."):                           "a dot",
		one(".." + strings.Repeat("a", 10)): "a dot",
		one("C:x"):                          "contains",
		one("con.json"):                     "device",
		one("LPT1"):                         "device",
		one("a "):                           "ends with",
		one(strings.Repeat("a", 300)):       "exceeds",
	} {
		f.Has(t, "POST", "/api/create", body, 400, `{"error":"`, want)
	}
	f.Has(t, "POST", "/api/create", `{"model":"x","from":"none"}`, 404, `{"error":"model 'none' not found"}`)

	// Errors about files name no folder of this machine.
	f.Has(t, "POST", "/api/blobs/"+digest.FromString("{ }").String(), "{ }", 201)
	status, text = f.Ask(t, "POST", "/api/create",
		`{"model":"x","files":{"config.json":"`+digest.FromString("{ }").String()+`"}}`)
	if status != 400 || strings.Contains(text, dir) || !strings.Contains(text, "config.json") {
		t.Errorf("%d: %s", status, text)
	}
	status, text = f.Ask(t, "POST", "/api/create",
		`{"model":"x","files":{"a.json":"`+digest.FromString("{ }").String()+`"}}`)
	if status != 400 || strings.Contains(text, dir) || !strings.Contains(text, "config.json") {
		t.Errorf("%d: %s", status, text)
	}
	f.Has(t, "POST", "/api/show", `{"model":"x"}`, 404)
	if got := f.left(t, "files-*"); len(got) > 0 {
		t.Errorf("remaining files: %v", got)
	}
}

// A create waits for another one, and stops waiting when its client disconnects.
func TestCreateWaits(t *testing.T) {
	f := serve(t, nil)
	f.api.buildSlot <- struct{}{}
	ctx, cancel := context.WithCancel(t.Context())
	r, err := http.NewRequestWithContext(ctx, "POST", f.URL+"/api/create",
		strings.NewReader(`{"model":"x","from":"plain"}`))
	if err != nil {
		t.Fatal(err)
	}
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	b := make([]byte, 100)
	if n, err := response.Body.Read(b); err != nil || !strings.Contains(string(b[:n]), statusWaiting) {
		t.Errorf("%q, %v", b[:n], err)
	}
	cancel()
	<-f.api.buildSlot
	f.Has(t, "POST", "/api/create", `{"model":"y","from":"plain","stream":false}`, 200)
	f.Has(t, "POST", "/api/show", `{"model":"x"}`, 404)
}

func TestCopyDelete(t *testing.T) {
	f := serve(t, nil)
	f.Has(t, "POST", "/api/copy", `{"source":"plain","destination":"other:v2"}`, 200)
	f.Has(t, "POST", "/api/generate", `{"model":"other:v2","prompt":"x","stream":false}`, 200)
	other := f.Parrot
	f.Has(t, "POST", "/api/copy", `{"source":"none","destination":"other"}`, 404,
		`{"error":"model \"none\" not found"}`)
	f.Has(t, "POST", "/api/copy", `{"source":"plain","destination":"../x"}`, 400, "model name")
	f.Has(t, "POST", "/api/copy", `{"source":"plain"}`, 400, "destination: model name")
	f.Has(t, "DELETE", "/api/delete", `{"model":"other:v2"}`, 200)
	<-other.Done() // the model is also unloaded
	f.Has(t, "DELETE", "/api/delete", `{"model":"other:v2"}`, 404, `{"error":"`)
	f.Has(t, "DELETE", "/api/delete", `{"name":"talk"}`, 200)
	f.Has(t, "DELETE", "/api/delete", `{}`, 400)
	f.Has(t, "POST", "/api/delete", `{"model":"plain"}`, 405, "use DELETE")
	f.Has(t, "POST", "/api/show", `{"model":"talk"}`, 404)
	f.Has(t, "POST", "/api/show", `{"model":"plain"}`, 200)
}

// Tools that a chat template does not support are an error. Thinking is a hint.
func TestCapabilities(t *testing.T) {
	f := serve(t, nil)
	f.Has(t, "POST", "/api/create",
		`{"model":"bare","from":"plain","template":"{% for m in messages %}{{ m.content }}{% endfor %}","stream":false}`, 200)
	const hi = `"messages":[{"role":"user","content":"Hi"}],"stream":false`
	const tool = `"tools":[{"type":"function","function":{"name":"f","parameters":{"type":"object"}}}]`
	f.Has(t, "POST", "/api/chat", `{"model":"bare",`+hi+`,`+tool+`}`, 400, "does not support tools")
	f.Has(t, "POST", "/api/chat", `{"model":"bare",`+hi+`,"think":"low"}`, 200, "Hello world")
	f.Has(t, "POST", "/api/chat", `{"model":"bare",`+hi+`,"think":false,"tools":[],"format":"","keep_alive":"1m"}`, 200,
		"Hello world")
	f.Has(t, "POST", "/api/chat", `{"model":"talk",`+hi+`,`+tool+`,"think":"high"}`, 200)

	// Ollama's own clients send empty fields for unset ones.
	f.Has(t, "POST", "/api/generate",
		`{"model":"talk","prompt":"Hi","system":"","template":"","suffix":"","context":null,"images":null,"think":null,`+
			`"options":null,"stream":false}`, 200)
	m, err := f.Find(t.Context(), "talk")
	if err != nil {
		t.Fatal(err)
	}
	want, err := m.EncodeRendered(t.Context(), "system:brief|user:Hi|think=-", true)
	if err != nil {
		t.Fatal(err)
	}
	if got := f.Parrot.Last(t).Prompt; fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("prompt %v, want %v", got, want)
	}
	f.Has(t, "POST", "/api/chat", `{"model":"plain",`+hi+`,"think":false}`, 200)
	f.Has(t, "POST", "/api/chat", `{"model":"plain",`+hi+`,"think":true}`, 200)
	f.Has(t, "POST", "/api/generate", `{"model":"plain","prompt":"x","raw":true,"suffix":"y"}`, 400, "raw excludes")
	f.Has(t, "POST", "/api/generate", `{"model":"plain","prompt":"x","raw":true,"think":false,"stream":false}`, 200)
	f.Has(t, "POST", "/api/generate",
		`{"model":"plain","prompt":"x","context":[1,-5],"options":{"mirostat":2,"numa":true,"typical_p":0.5,`+
			`"num_predict":-2},"stream":false}`, 200)
}

// A file counts for each of its names, so that one file with many names cannot exceed the memory limits.
func TestCreateLargeFiles(t *testing.T) {
	f := serve(t, nil)
	b := make([]byte, 16<<20)
	binary.LittleEndian.PutUint64(b, uint64(len(b)-8))
	d := digest.FromBytes(b).String()
	f.Has(t, "POST", "/api/blobs/"+d, string(b), 201)
	for pattern, want := range map[string]string{
		"LICENSE-%d.txt": "other than weights", "model-%d.safetensors": "headers of the weights",
	} {
		files := map[string]string{}
		for i := range 33 {
			files[fmt.Sprintf(pattern, i)] = d
		}
		body, err := wire.Encode(map[string]any{"model": "x", "files": files})
		if err != nil {
			t.Fatal(err)
		}
		status, text := f.Ask(t, "POST", "/api/create", string(body))
		if status != 400 || !strings.Contains(text, want) {
			t.Errorf("%s: %d: %s", pattern, status, text)
		}
	}
	if got := f.left(t, "files-*"); len(got) > 0 {
		t.Errorf("remaining files: %v", got)
	}
}
