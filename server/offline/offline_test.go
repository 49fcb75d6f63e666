package offline

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"mime/multipart"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ingotml/ingot/runtime"
	"github.com/ingotml/ingot/server"
	"github.com/ingotml/ingot/server/batches"
	"github.com/ingotml/ingot/server/keys"
	"github.com/ingotml/ingot/server/openai"
	"github.com/ingotml/ingot/server/servertest"
)

func TestMain(m *testing.M) { os.Exit(servertest.Main(m)) }

// fixture is a server with this API and OpenAI's.
type fixture struct {
	*servertest.Fixture
	key string // sent with requests; "": none
}

func serve(t testing.TB, change func(*server.Options)) *fixture {
	t.Helper()
	return &fixture{servertest.Serve(t, change, openai.New, New), ""}
}

// bounded serves with other limits.
func bounded(t testing.TB, b bounds) *fixture {
	t.Helper()
	made := func(core *server.Server) server.API { return newAPI(core, b) }
	return &fixture{servertest.Serve(t, nil, openai.New, made), ""}
}

// ask sends a request with the fixture's key.
func (f *fixture) ask(t *testing.T, method, path, body string, headers ...string) (int, string) {
	t.Helper()
	if f.key != "" {
		headers = append(headers, "Authorization", "Bearer "+f.key)
	}
	return f.Ask(t, method, path, body, headers...)
}

// form returns a form with parts in order: name, value pairs; the part file is a file.
func form(t *testing.T, parts ...string) (body, kind string) {
	t.Helper()
	var b bytes.Buffer
	w := multipart.NewWriter(&b)
	for i := 0; i < len(parts); i += 2 {
		var to io.Writer
		var err error
		if parts[i] == "file" {
			to, err = w.CreateFormFile("file", "in.jsonl")
		} else {
			to, err = w.CreateFormField(parts[i])
		}
		if err == nil {
			_, err = io.WriteString(to, parts[i+1])
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.String(), w.FormDataContentType()
}

// upload uploads a file of requests and returns its id.
func (f *fixture) upload(t *testing.T, content string) string {
	t.Helper()
	body, kind := form(t, "purpose", "batch", "file", content)
	status, text := f.ask(t, "POST", "/v1/files", body, "Content-Type", kind)
	x := servertest.Decode[fileJSON](t, text)
	if status != 200 || x.Object != "file" || x.Bytes != int64(len(content)) || x.Filename != "in.jsonl" ||
		x.Purpose != "batch" || x.CreatedAt == 0 {
		t.Fatalf("%d: %s", status, text)
	}
	return x.ID
}

// create starts a batch.
func (f *fixture) create(t *testing.T, file, endpoint string) batchJSON {
	t.Helper()
	status, text := f.ask(t, "POST", "/v1/batches",
		`{"input_file_id":"`+file+`","endpoint":"`+endpoint+`","completion_window":"24h","metadata":{"a":"b"}}`)
	b := servertest.Decode[batchJSON](t, text)
	if status != 200 || b.Object != "batch" || b.Input != file || b.Metadata["a"] != "b" || b.ExpiresAt == nil ||
		*b.ExpiresAt != b.CreatedAt+24*3600 {
		t.Fatalf("%d: %s", status, text)
	}
	return b
}

func (f *fixture) batch(t *testing.T, id string) batchJSON {
	t.Helper()
	_, text := f.ask(t, "GET", "/v1/batches/"+id, "")
	return servertest.Decode[batchJSON](t, text)
}

// wait waits until a batch has a state.
func (f *fixture) wait(t *testing.T, id, status string) batchJSON {
	t.Helper()
	for {
		b := f.batch(t, id)
		if b.Status == status {
			return b
		}
		if b.finished() || t.Context().Err() != nil {
			t.Fatalf("%+v, want %s", b, status)
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// results returns the results in a file.
func (f *fixture) results(t *testing.T, id *string) (all []batches.Result) {
	t.Helper()
	if id == nil {
		return nil
	}
	_, text := f.ask(t, "GET", "/v1/files/"+*id+"/content", "")
	for line := range strings.Lines(text) {
		all = append(all, servertest.Decode[batches.Result](t, line))
	}
	return all
}

func line(id, path, body string) string {
	return `{"custom_id":"` + id + `","method":"POST","url":"` + path + `","body":` + body + "}\n"
}

func completion(id string) string {
	return line(id, "/v1/completions", `{"model":"plain","prompt":"`+id+`","echo":true,"priority":50}`)
}

// A batch runs the requests of a file at the lowest priority. Its results are in order, those that failed in a file of
// their own.
func TestBatch(t *testing.T) {
	f := serve(t, nil)
	var in strings.Builder
	for i := range 30 {
		in.WriteString(completion(fmt.Sprint("r", i)))
	}
	in.WriteString(line("none", "/v1/completions", `{"model":"none","prompt":"x"}`) + "oops\n" +
		line("bad", "/v1/completions", `{"model":"plain"}`) + completion("last"))
	file := f.upload(t, in.String())
	b := f.wait(t, f.create(t, file, "/v1/completions").ID, completed)
	if b.Counts != (countsJSON{34, 31, 3}) || b.Output == nil || b.ErrorFile == nil || b.CompletedAt == nil ||
		b.InProgressAt == nil || b.FinalizingAt == nil || b.FailedAt != nil || b.Errors != nil {
		t.Errorf("%+v", b)
	}
	good := f.results(t, b.Output)
	if len(good) != 31 || *good[30].CustomID != "last" {
		t.Fatalf("%+v", good)
	}
	for i, r := range good[:30] {
		id := fmt.Sprint("r", i)
		if *r.CustomID != id || r.Response.Status != 200 || r.Response.RequestID == "" ||
			!strings.Contains(string(r.Response.Body), `"text":"`+id+`Hello world"`) {
			t.Errorf("result %d: %+v", i, r)
		}
	}
	bad := f.results(t, b.ErrorFile)
	if len(bad) != 3 || bad[0].Response.Status != 404 || bad[1].Line != 32 || bad[1].Error == nil ||
		bad[2].Response.Status != 400 || !strings.Contains(string(bad[2].Response.Body), `"param":"prompt"`) {
		t.Errorf("%+v", bad)
	}
	if r := f.Parrot.Last(t); r.Priority != -runtime.MaxPriority {
		t.Errorf("the priority is %d", r.Priority)
	}
	_, text := f.ask(t, "GET", "/v1/files?purpose=batch_output&order=asc", "")
	list := servertest.Decode[listJSON[fileJSON]](t, text)
	if len(list.Data) != 2 || list.HasMore || list.Data[0].ExpiresAt == nil || *list.FirstID != list.Data[0].ID {
		t.Errorf("%s", text)
	}
	if left, _ := filepath.Glob(filepath.Join(f.Options().Store.Path("batches"), "*", "*.results")); len(left) > 0 {
		t.Errorf("%v is left", left)
	}
}

// Every endpoint works.
func TestEndpoints(t *testing.T) {
	f := serve(t, nil)
	for path, c := range map[string]struct{ body, want string }{
		"/v1/chat/completions": {`{"model":"talk","messages":[{"role":"user","content":"Hi"}]}`, `"content":"Hello world"`},
		"/v1/completions":      {`{"model":"plain","prompt":"x"}`, `"text":"Hello world"`},
		"/v1/responses":        {`{"model":"talk","input":"Hi"}`, `"text":"Hello world"`},
		"/v1/embeddings":       {`{"model":"plain","input":"x"}`, `"embedding":[`},
	} {
		b := f.wait(t, f.create(t, f.upload(t, line("a", path, c.body)), path).ID, completed)
		if got := f.results(t, b.Output); len(got) != 1 || !strings.Contains(string(got[0].Response.Body), c.want) {
			t.Errorf("%s: %+v, %+v", path, b, got)
		}
	}
}

// A batch goes on when the server starts again, and no finished request runs twice.
func TestRestart(t *testing.T) {
	var in strings.Builder
	for i := range 40 {
		in.WriteString(completion(fmt.Sprint("r", i)))
	}
	f := serve(t, nil)
	options := f.Options()
	f.Wait = make(chan struct{})
	id := f.create(t, f.upload(t, in.String()), "/v1/completions").ID
	written := func() int {
		path, err := filepath.Glob(filepath.Join(options.Store.Path("batches"), "*", "*.results"))
		if err != nil || t.Context().Err() != nil {
			t.Fatal(err)
		}
		if len(path) == 0 {
			return 0
		}
		b, _ := os.ReadFile(path[0])
		return bytes.Count(b, []byte("\n"))
	}
	for written() < 10 { // requests end in the order in which they began to wait
		f.Wait <- struct{}{}
		time.Sleep(10 * time.Millisecond)
	}
	f.Close()
	done := written()
	again := serve(t, func(o *server.Options) { o.Store = options.Store })
	b := again.wait(t, id, completed)
	got := again.results(t, b.Output)
	if len(got) != 40 || b.Counts != (countsJSON{40, 40, 0}) {
		t.Fatalf("%+v, %d results", b, len(got))
	}
	for i, r := range got {
		if *r.CustomID != fmt.Sprint("r", i) {
			t.Errorf("result %d is that of %s", i, *r.CustomID)
		}
	}
	if n := len(again.Parrot.Requests); done < 10 || n != 40-done {
		t.Errorf("%d requests ran after the start, %d had results", n, done)
	}
}

// A cancelled batch keeps the results of finished requests. One that has not begun has none.
func TestCancel(t *testing.T) {
	f := serve(t, nil)
	f.Wait = make(chan struct{})
	file := f.upload(t, completion("a")+completion("b")+completion("c"))
	first, second := f.create(t, file, "/v1/completions").ID, f.create(t, file, "/v1/completions").ID
	f.Wait <- struct{}{}
	f.wait(t, first, inProgress)
	if status, text := f.ask(t, "DELETE", "/v1/files/"+file, ""); status != 400 ||
		!strings.Contains(text, "which is not finished") {
		t.Errorf("%d: %s", status, text)
	}
	for _, id := range []string{second, first} {
		status, text := f.ask(t, "POST", "/v1/batches/"+id+"/cancel", "")
		if b := servertest.Decode[batchJSON](t, text); status != 200 || b.CancellingAt == nil {
			t.Errorf("%d: %s", status, text)
		}
	}
	a, b := f.wait(t, first, cancelled), f.wait(t, second, cancelled)
	if n := len(f.results(t, a.Output)); a.CancelledAt == nil || n > 1 || a.Counts.Completed != n || b.Output != nil {
		t.Errorf("%+v, %+v", a, b)
	}
	if status, text := f.ask(t, "POST", "/v1/batches/"+first+"/cancel", ""); status != 400 ||
		!strings.Contains(text, "is cancelled and cannot") {
		t.Errorf("%d: %s", status, text)
	}
	status, text := f.ask(t, "DELETE", "/v1/files/"+file, "")
	if status != 200 || !strings.Contains(text, `"deleted":true`) {
		t.Errorf("%d: %s", status, text)
	}
	if status, _ = f.ask(t, "GET", "/v1/files/"+file+"/content", ""); status != 404 {
		t.Errorf("a deleted file has status %d", status)
	}
}

// A batch that takes too long has an error for each request that did not run.
func TestExpiry(t *testing.T) {
	f := serve(t, nil)
	f.Wait = make(chan struct{})
	b := f.create(t, f.upload(t, completion("a")+completion("b")), "/v1/completions")
	f.wait(t, b.ID, inProgress)
	f.Close()
	store := &files{root: f.Options().Store.Path("batches"), space: f.Options().Store.Space(), now: time.Now}
	if _, err := store.update(t.Context(), "", b.ID, func(b *record) error {
		b.ExpiresAt = new(time.Now().Unix() - 1)
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	again := serve(t, func(o *server.Options) { o.Store = f.Options().Store })
	b = again.wait(t, b.ID, expired)
	got := again.results(t, b.ErrorFile)
	if b.ExpiredAt == nil || len(got) != 2 || got[1].Error.Code != batches.CodeExpired || *got[1].CustomID != "b" ||
		b.Counts != (countsJSON{2, 0, 2}) {
		t.Errorf("%+v, %+v", b, got)
	}
}

// Files and batches belong to a key.
func TestOwners(t *testing.T) {
	path := filepath.Join(t.TempDir(), "keys")
	if err := os.WriteFile(path, []byte("ann one-secret-key\nbob another-secret-key\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	all, err := keys.Open(path, t.Logf)
	if err != nil {
		t.Fatal(err)
	}
	f := serve(t, func(o *server.Options) { o.Keys = all })
	ann, bob := &fixture{f.Fixture, "one-secret-key"}, &fixture{f.Fixture, "another-secret-key"}
	file := ann.upload(t, completion("a"))
	b := ann.wait(t, ann.create(t, file, "/v1/completions").ID, completed)
	for _, path := range []string{"/v1/files/" + file, "/v1/files/" + file + "/content", "/v1/files/" + *b.Output,
		"/v1/batches/" + b.ID} {
		if status, _ := ann.ask(t, "GET", path, ""); status != 200 {
			t.Errorf("%s: %d", path, status)
		}
		if status, text := bob.ask(t, "GET", path, ""); status != 404 {
			t.Errorf("%s of another key: %d: %s", path, status, text)
		}
	}
	for _, path := range []string{"/v1/files", "/v1/batches"} {
		if _, text := bob.ask(t, "GET", path, ""); !strings.Contains(text, `"data":[],"first_id":null`) {
			t.Errorf("%s: %s", path, text)
		}
	}
	if status, _ := bob.ask(t, "POST", "/v1/batches/"+b.ID+"/cancel", ""); status != 404 {
		t.Errorf("another key's batch can be cancelled: %d", status)
	}
	if status, _ := bob.ask(t, "DELETE", "/v1/files/"+file, ""); status != 404 {
		t.Errorf("another key's file can be deleted: %d", status)
	}
	states := all.States()
	i := slices.IndexFunc(states, func(s keys.State) bool { return s.Name == "ann" })
	if i < 0 || states[i].Generated == 0 {
		t.Errorf("the key is not charged: %+v", states)
	}
}

// Two servers of one store run a batch once.
func TestTwoServers(t *testing.T) {
	one := serve(t, nil)
	two := serve(t, func(o *server.Options) { o.Store = one.Options().Store })
	var in strings.Builder
	for i := range 20 {
		in.WriteString(completion(fmt.Sprint("r", i)))
	}
	id := one.create(t, one.upload(t, in.String()), "/v1/completions").ID
	b := two.wait(t, id, completed)
	n := 0
	for _, f := range []*fixture{one, two} {
		if f.Parrot != nil {
			n += len(f.Parrot.Requests)
		}
	}
	if n != 20 || len(two.results(t, b.Output)) != 20 {
		t.Errorf("%d requests ran, %+v", n, b)
	}
}

// Pages of a list.
func TestPage(t *testing.T) {
	all := []string{"a", "b", "c", "d"}
	self := func(s string) string { return s }
	for query, want := range map[string]string{
		"": "[d c b a] false", "order=asc": "[a b c d] false", "limit=2": "[d c] true", "limit=2&after=c": "[b a] false",
		"limit=3&order=asc&after=a": "[b c d] false", "after=a": "[] false", "limit=1&after=d": "[c] true",
		"limit=0": "limit", "limit=5": "limit", "limit=x": "limit", "order=up": "order", "after=z": "after",
	} {
		r, err := http.NewRequestWithContext(context.Background(), "GET", "/?"+query, nil)
		if err != nil {
			t.Fatal(err)
		}
		p, err := page(r, slices.Clone(all), 4, self)
		got := fmt.Sprint(p.Data, " ", p.HasMore)
		if err != nil {
			got, _, _ = strings.Cut(err.Error(), ":")
		}
		if got != want {
			t.Errorf("%s: %s, want %s", query, got, want)
		}
		if b, err := json.Marshal(p); err != nil || len(p.Data) > 0 && !strings.Contains(string(b), `"last_id":"`+
			p.Data[len(p.Data)-1]) {
			t.Errorf("%s: %s", query, b)
		}
	}
}
