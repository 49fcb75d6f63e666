package offline

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ingotml/ingot/internal/limits"
)

// roomy are limits that no test reaches by accident.
var roomy = bounds{file: 1 << 20, space: 1 << 20, output: 1 << 20, files: 10, requests: 10, batches: 10, unfinished: 10}

// Files are bounded in size, in number and all together.
func TestFileLimits(t *testing.T) {
	one := completion("a")
	send := func(f *fixture, content string, status int, want string) {
		t.Helper()
		body, kind := form(t, "file", content, "purpose", "batch")
		if got, text := f.ask(t, "POST", "/v1/files", body, "Content-Type", kind); got != status ||
			!strings.Contains(text, want) {
			t.Errorf("%d bytes: %d: %s", len(content), got, text)
		}
	}
	small := roomy
	small.file = int64(len(one))
	f := bounded(t, small)
	send(f, one, 200, "")
	send(f, one+"x", 413, fmt.Sprintf("more than %d bytes", len(one)))
	send(f, strings.Repeat("x", 1<<20), 413, "")

	small = roomy
	small.space = 2*int64(len(one)) + 5
	f = bounded(t, small)
	send(f, one, 200, "")
	send(f, one+"123456", 413, "the other files")
	send(f, one+"12345", 200, "")
	send(f, "x", 400, "delete some first")

	small = roomy
	small.files = 2
	f = bounded(t, small)
	send(f, one, 200, "")
	send(f, one, 200, "")
	send(f, one, 400, "has 2 files")
	left, err := filepath.Glob(filepath.Join(f.Options().Store.Path("batches"), "*", partPattern))
	if err != nil || len(left) > 0 {
		t.Errorf("%v is left, %v", left, err)
	}

	small = roomy
	small.output = 10
	f = bounded(t, small)
	b := f.wait(t, f.create(t, f.upload(t, one), "/v1/completions").ID, failed)
	if b.Errors == nil || b.Errors.Data[0].Code != "server_error" || b.FailedAt == nil {
		t.Errorf("%+v", b)
	}
	if limits.BatchFile > limits.BatchSpace {
		t.Error("a file may be larger than all files")
	}
}

// Batches are bounded in requests, in number, and in those that are not finished.
func TestBatchLimits(t *testing.T) {
	small := roomy
	small.requests, small.batches, small.unfinished = 2, 3, 2
	f := bounded(t, small)
	three := completion("a") + completion("b") + completion("c")
	b := f.wait(t, f.create(t, f.upload(t, three), "/v1/completions").ID, failed)
	e := b.Errors.Data[0]
	if e.Code != "too_many_requests" || *e.Line != 3 || !strings.Contains(e.Message, "more than 2") {
		t.Errorf("%+v", e)
	}
	file := f.upload(t, completion("a")+completion("b"))
	var all []string
	for range 3 {
		all = append(all, f.wait(t, f.create(t, file, "/v1/completions").ID, completed).ID)
	}
	if status, _ := f.ask(t, "GET", "/v1/batches/"+b.ID, ""); status != 404 {
		t.Errorf("the oldest batch is remembered: %d", status)
	}
	if status, _ := f.ask(t, "GET", "/v1/batches/"+all[0], ""); status != 200 {
		t.Errorf("a younger batch is not remembered: %d", status)
	}

	f = bounded(t, small)
	f.Wait = make(chan struct{})
	file = f.upload(t, completion("a"))
	f.create(t, file, "/v1/completions")
	f.create(t, file, "/v1/completions")
	status, text := f.ask(t, "POST", "/v1/batches",
		`{"input_file_id":"`+file+`","endpoint":"/v1/completions","completion_window":"24h"}`)
	if status != 503 || !strings.Contains(text, "2 batches of the key are not finished") {
		t.Errorf("%d: %s", status, text)
	}
}

// What is wrong with a form or a batch is said with the field's name.
func TestBatchRefused(t *testing.T) {
	f := serve(t, nil)
	for want, parts := range map[string][]string{
		`"param":"file"`:                         {"purpose", "batch"},
		"nothing is not batch":                   {"file", "x"},
		"fine-tune is not batch":                 {"purpose", "fine-tune", "file", "x"},
		"it is empty":                            {"purpose", "batch", "file", ""},
		"there are several":                      {"purpose", "batch", "file", "x", "file", "y"},
		`"param":"purpose"`:                      {"purpose", strings.Repeat("x", 2000), "file", "x"},
		"expires_after.anchor: now":              {"purpose", "batch", "file", "x", "expires_after[anchor]", "now"},
		"expires_after.seconds: must be between": {"purpose", "batch", "file", "x", "expires_after[anchor]", "created_at"},
	} {
		body, kind := form(t, parts...)
		if status, text := f.ask(t, "POST", "/v1/files", body, "Content-Type", kind); status != 400 ||
			!strings.Contains(text, want) {
			t.Errorf("%v: %d: %s", parts, status, text)
		}
	}
	body, kind := form(t, "purpose", "batch", "file", "x", "expires_after[anchor]", "created_at", "expires_after[seconds]",
		"3600")
	if status, text := f.ask(t, "POST", "/v1/files", body, "Content-Type", kind); status != 200 ||
		!strings.Contains(text, `"expires_at":`) {
		t.Errorf("%d: %s", status, text)
	}
	cut, kind := form(t, "purpose", "batch", "file", "x")
	f.has(t, "POST", "/v1/files", cut[:len(cut)-10], 400, "incomplete", "Content-Type", kind)
	f.has(t, "POST", "/v1/files", "x", 400, "multipart/form-data")

	file := f.upload(t, completion("a"))
	of := func(change string) string {
		return `{"input_file_id":"` + file + `","endpoint":"/v1/completions","completion_window":"24h"` + change + `}`
	}
	var many []string
	for i := range limits.BatchMetadata + 1 {
		many = append(many, fmt.Sprintf(`"k%d":"v"`, i))
	}
	for change, want := range map[string]string{
		`,"input_file_id":""`:                                  "input_file_id: missing",
		`,"input_file_id":"file-none"`:                         "no file file-none",
		`,"input_file_id":"../../../etc/passwd"`:               "no file ../",
		`,"endpoint":"/v1/messages"`:                           `"param":"endpoint"`,
		`,"completion_window":"1h"`:                            `"param":"completion_window"`,
		`,"metadata":{` + strings.Join(many, ",") + `}`:        "it has 17 keys, at most 16",
		`,"metadata":{"a":"` + strings.Repeat("x", 513) + `"}`: "values 512",
		`,"output_expires_after":{"anchor":"x"}`:               `"param":"output_expires_after.anchor"`,
	} {
		f.has(t, "POST", "/v1/batches", of(change), 400, want)
	}
	b := f.wait(t, f.create(t, file, "/v1/completions").ID, completed)
	f.has(t, "POST", "/v1/batches", strings.ReplaceAll(of(""), file, *b.Output), 400, "has results, not requests")
	for _, path := range []string{"/v1/files/x", "/v1/files/" + b.ID, "/v1/files/..%2f..%2fx", "/v1/batches/" + file} {
		f.has(t, "GET", path, "", 404, `"type":"invalid_request_error"`)
	}
	for content, code := range map[string]string{
		"\n": "empty_file", completion("a") + completion("a"): "duplicate_custom_id",
	} {
		b := f.wait(t, f.create(t, f.upload(t, content), "/v1/completions").ID, failed)
		if b.Errors.Data[0].Code != code {
			t.Errorf("%q: %+v", content, b.Errors)
		}
	}
	// The longest description that a client can make is readable.
	var long []string
	for i := range limits.BatchMetadata {
		long = append(long, fmt.Sprintf(`"%s%02d":"%s"`, strings.Repeat("\\u0001", 62), i, strings.Repeat("\\u0001", 512)))
	}
	status, text := f.ask(t, "POST", "/v1/batches", of(`,"metadata":{`+strings.Join(long, ",")+`}`))
	if status != 200 {
		t.Fatalf("%d: %s", status, text)
	}
	_, id, _ := strings.Cut(text, `"id":"`)
	f.wait(t, id[:len(b.ID)], completed)
	path := filepath.Join((&files{root: f.Options().Store.Path("batches")}).folder(""), b.ID+dataExtension)
	if err := os.WriteFile(path, make([]byte, limits.BatchRecord+1), 0o600); err != nil {
		t.Fatal(err)
	}
	f.has(t, "GET", "/v1/batches/"+b.ID, "", 500, "")
}

func (f *fixture) has(t *testing.T, method, path, body string, status int, want string, headers ...string) {
	t.Helper()
	if got, text := f.ask(t, method, path, body, headers...); got != status || !strings.Contains(text, want) {
		t.Errorf("%s %s %.200s: %d: %s", method, path, body, got, text)
	}
}

// Expired files are gone, and so is what killed servers leave.
func TestTidy(t *testing.T) {
	f := serve(t, nil)
	file := f.upload(t, completion("a"))
	store := &files{root: f.Options().Store.Path("batches"), space: f.Options().Store.Space(), now: f.Options().Store.Now}
	x, err := store.file("", file)
	if err != nil {
		t.Fatal(err)
	}
	x.ExpiresAt = new(x.CreatedAt - 1)
	if err := store.write("", file, x); err != nil {
		t.Fatal(err)
	}
	f.has(t, "GET", "/v1/files/"+file, "", 404, "no file")
	second := f.upload(t, completion("a"))
	x.ID = second
	if err := store.write("", second, x); err != nil {
		t.Fatal(err)
	}
	part, err := store.begin("", 10)
	if err != nil {
		t.Fatal(err)
	}
	part.space.Release()
	old := f.Options().Store.Now().Add(-2 * partLife)
	if err := os.Chtimes(part.temp.Name(), old, old); err != nil {
		t.Fatal(err)
	}
	store.tidy()
	left, err := filepath.Glob(filepath.Join(store.folder(""), "*"))
	if err != nil || len(left) > 0 {
		t.Errorf("%v, %v", left, err)
	}
}

// The files that are uploaded at a time are bounded.
func TestUploadsAtOnce(t *testing.T) {
	f := serve(t, nil)
	s := &api{core: f.Server, uploads: make(chan struct{})}
	err := s.upload(nil, nil)
	if err == nil || !strings.Contains(err.Error(), "upload this one again later") {
		t.Error(err)
	}
}
