package hub

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ingotml/ingot/registry/hub/hubtest"
)

// random returns n bytes that depend on seed.
func random(seed uint64, n int) []byte {
	r := rand.New(rand.NewPCG(seed, 0))
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(r.Uint32())
	}
	return b
}

// files are those of a small repository.
func files() map[string]hubtest.Content {
	return map[string]hubtest.Content{
		"config.json":            hubtest.Bytes(`{"model_type": "llama"}`),
		"README.md":              hubtest.Bytes("# A model"),
		"model-1.safetensors":    hubtest.Bytes(random(1, 5<<20)),
		"model-2.safetensors":    hubtest.Bytes(random(2, 300_001)),
		"1_Pooling/config.json":  hubtest.Bytes("{}"),
		"name with space #1.txt": hubtest.Bytes("escaped"),
	}
}

func start(t *testing.T) *hubtest.Hub {
	t.Helper()
	h := hubtest.New()
	t.Cleanup(h.Close)
	return h
}

// client returns a client of a fake that waits for nothing.
func client(h *hubtest.Hub, opts Options) *Client {
	opts.Endpoint, opts.ModelScope = h.URL(), h.URL()
	opts.Stall = cmp.Or(opts.Stall, 300*time.Millisecond)
	if opts.Sleep == nil {
		opts.Sleep = func(ctx context.Context, _ time.Duration) error { return ctx.Err() }
	}
	return New(opts)
}

func open(t *testing.T, c *Client, name string) *Folder {
	t.Helper()
	n, err := ParseName(name)
	if err != nil {
		t.Fatal(err)
	}
	f, err := c.Open(t.Context(), n)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

// expectAll announces all large files, from begin to end.
func expectAll(f *Folder, list map[string]hubtest.Content) {
	f.Expect(func(yield func(string, int64, int64) bool) {
		for _, name := range f.names {
			if strings.HasSuffix(name, ".safetensors") && !yield(name, 0, list[name].Size()) {
				return
			}
		}
	}, true)
}

// checkAll reads all files and compares them, large ones in pieces by several goroutines.
func checkAll(t *testing.T, f *Folder, list map[string]hubtest.Content) {
	t.Helper()
	var group sync.WaitGroup
	for name, want := range list {
		group.Go(func() {
			file, err := f.Open(name)
			if err != nil {
				t.Errorf("%s: %v", name, err)
				return
			}
			defer file.Close()
			var got []byte
			if strings.HasSuffix(name, ".safetensors") {
				got, err = io.ReadAll(io.NewSectionReader(file.(io.ReaderAt), 0, want.Size()))
			} else {
				got, err = io.ReadAll(file)
			}
			if err != nil || !bytes.Equal(got, want.(hubtest.Bytes)) {
				t.Errorf("%s: %d bytes, want %d: %v", name, len(got), want.Size(), err)
			}
		})
	}
	group.Wait()
}

func TestRead(t *testing.T) {
	h := start(t)
	repository := h.Add("tiny/model", files())
	h.PageSize = 2
	f := open(t, client(h, Options{Stall: time.Minute}), "hf.co/tiny/model") // a retry would resolve a file again
	entries, err := f.ReadDir(".")
	if err != nil || len(entries) != 6 || !entries[0].IsDir() {
		t.Errorf("%v, %v", entries, err)
	}
	if repo, revision, commit := f.Commit(); repo != "hf.co/tiny/model" || revision != "" || commit != repository.Head() {
		t.Error(repo, revision, commit)
	}
	expectAll(f, files())
	checkAll(t, f, files())
	if err := f.Verify(t.Context()); err != nil {
		t.Error(err)
	}
	for name, n := range h.Resolved() {
		if n != 1 {
			t.Errorf("%s was resolved %d times", name, n)
		}
	}
	if _, err := f.Open("absent"); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
}

// Whatever fails in passing, the bytes are right.
func TestFaults(t *testing.T) {
	for seed := range uint64(4) {
		h := start(t)
		h.Add("tiny/model", files())
		h.Set(func(h *hubtest.Hub) { h.Faults = hubtest.Faults{Share: 0.3, Seed: seed} })
		f := open(t, client(h, Options{Attempts: 30}), "hf.co/tiny/model")
		expectAll(f, files())
		checkAll(t, f, files())
		if err := f.Verify(t.Context()); err != nil {
			t.Error(err)
		}
	}
}

// A signed address that expires is asked for again, and only then.
func TestExpiry(t *testing.T) {
	h := start(t)
	h.Add("tiny/model", files())
	h.Signed = 150 * time.Millisecond
	f := open(t, client(h, Options{}), "hf.co/tiny/model")
	for range 3 {
		p := make([]byte, 10)
		file, _ := f.Open("model-1.safetensors")
		if _, err := file.(io.ReaderAt).ReadAt(p, 1000); err != nil || !bytes.Equal(p, random(1, 5<<20)[1000:1010]) {
			t.Fatal(err)
		}
		time.Sleep(200 * time.Millisecond)
	}
	if n := h.Resolved()["model-1.safetensors"]; n != 3 {
		t.Errorf("resolved %d times, want 3", n)
	}
}

// The token goes to the endpoint, and nowhere else: the CDN differs from it in the port only.
func TestToken(t *testing.T) {
	h := start(t)
	h.Token = "hf_secret"
	h.Add("tiny/gated", files()).Gate()
	c := client(h, Options{Token: "hf_secret"})
	f := open(t, c, "hf.co/tiny/gated")
	checkAll(t, f, files())
	for _, r := range h.Requests() {
		if r.CDN != (r.Authorization == "") {
			t.Errorf("%+v", r)
		}
	}
}

// Errors name the repository and the remedy, and hold no secret.
func TestErrors(t *testing.T) {
	h := start(t)
	h.Token = "hf_secret"
	h.Add("tiny/model", files())
	h.Add("tiny/gated", files()).Gate()
	for _, c := range []struct {
		name, token, want string
		is                error
	}{
		{"hf.co/tiny/absent", "", "there is no such repository, or it is private; check the name, or set", ErrNotFound},
		{"hf.co/tiny/absent", "hf_wrong", "the token in HF_TOKEN is invalid or has no access", ErrNotFound},
		{"hf.co/tiny/model@v9", "", `it has no revision "v9"`, ErrNotFound},
		{"hf.co/tiny/gated", "", "accept its licence at https://huggingface.co/tiny/gated, and set HF_TOKEN", ErrForbidden},
		{"hf.co/tiny/gated", "hf_wrong", "with the account of the token in HF_TOKEN", ErrForbidden},
	} {
		n, err := ParseName(c.name)
		if err != nil {
			t.Fatal(err)
		}
		f, err := client(h, Options{Token: c.token}).Open(t.Context(), n)
		if err == nil {
			var file fs.File
			if file, err = f.Open("config.json"); err == nil {
				_, err = io.ReadAll(file)
			}
		}
		if !errors.Is(err, c.is) || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "hf_") {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

// A commit that changes under a run is not mixed.
func TestChanged(t *testing.T) {
	h := start(t)
	repository := h.Add("tiny/model", files())
	f := open(t, client(h, Options{}), "hf.co/tiny/model")
	later := files()
	later["model-1.safetensors"] = hubtest.Bytes(random(7, 5<<20))
	repository.Commit(later)
	expectAll(f, files())
	checkAll(t, f, files()) // the commit that was opened, although main is another one now
	if err := f.Verify(t.Context()); err != nil {
		t.Error(err)
	}
	for _, c := range []struct {
		what  string
		with  hubtest.Content
		quiet bool
		want  error
	}{
		{"etag", hubtest.Bytes(random(8, 5<<20)), false, ErrChanged},
		{"size", hubtest.Bytes(random(8, 5<<20-1)), true, ErrChanged},
		{"bytes", hubtest.Bytes(random(8, 5<<20)), true, ErrChecksum},
	} {
		h := start(t)
		repository := h.Add("tiny/model", files())
		f := open(t, client(h, Options{}), "hf.co/tiny/model")
		repository.Replace("model-1.safetensors", c.with, c.quiet)
		expectAll(f, files())
		file, _ := f.Open("model-1.safetensors")
		_, err := io.Copy(io.Discard, io.NewSectionReader(file.(io.ReaderAt), 0, 5<<20))
		if verified := f.Verify(t.Context()); err == nil {
			err = verified
		}
		if !errors.Is(err, c.want) || !f.Differs() || !strings.Contains(err.Error(), f.Path("model-1.safetensors")) {
			t.Errorf("%s: %v", c.what, err)
		}
	}
	h = start(t)
	repository = h.Add("tiny/model", files())
	f = open(t, client(h, Options{}), "hf.co/tiny/model")
	repository.Replace("README.md", hubtest.Bytes("# B model"), true)
	if file, _ := f.Open("README.md"); !errors.Is(readError(file), ErrChecksum) {
		t.Error("a small file is not checked")
	}
}

func readError(file fs.File) error {
	_, err := io.ReadAll(file)
	return err
}

// A limit is waited for as long as the hub says, which the user is told.
func TestRateLimit(t *testing.T) {
	for _, wait := range []string{"7", ""} {
		h := start(t)
		h.Add("tiny/model", files())
		h.Limit, h.Wait = 2, wait
		var waited []time.Duration
		var told []string
		sleep := func(_ context.Context, d time.Duration) error {
			waited = append(waited, d)
			return nil
		}
		c := client(h, Options{Notice: func(s string) { told = append(told, s) }, Sleep: sleep})
		checkAll(t, open(t, c, "hf.co/tiny/model"), map[string]hubtest.Content{"config.json": files()["config.json"]})
		checkAll(t, open(t, c, "hf.co/tiny/model"), map[string]hubtest.Content{"README.md": files()["README.md"]})
		if len(waited) != 1 || waited[0] < 7*time.Second || waited[0] > 10*time.Second || len(told) != 1 {
			t.Error(waited, told)
		}
	}
	h := start(t)
	h.Add("tiny/model", files())
	h.Limit, h.Wait = 1, "864000"
	file, _ := open(t, client(h, Options{}), "hf.co/tiny/model").Open("config.json")
	if err := readError(file); !errors.Is(err, ErrLimited) {
		t.Error(err)
	}
}

func sum(c hubtest.Content) string { return fmt.Sprintf("%x", sha256.Sum256(c.(hubtest.Bytes))) }

func TestModelScope(t *testing.T) {
	h := start(t)
	repository := h.Add("tiny/model", files())
	c := client(h, Options{})
	f := open(t, c, "modelscope.cn/tiny/model")
	expectAll(f, files())
	checkAll(t, f, files())
	if err := f.Verify(t.Context()); err != nil {
		t.Error(err)
	}
	repository.Commit(map[string]hubtest.Content{"config.json": hubtest.Bytes("{}")})
	if err := f.Verify(t.Context()); !errors.Is(err, ErrChanged) {
		t.Error(err)
	}
	n, _ := ParseName("modelscope.cn/tiny/absent")
	if _, err := c.Open(t.Context(), n); !errors.Is(err, ErrNotFound) {
		t.Error(err)
	}
}

// ModelScope's list is the only place that says how large its files are.
func TestModelScopeSizes(t *testing.T) {
	for _, size := range []string{"-1", "-2", "-9223372036854775808"} {
		h := start(t)
		respond(h, func(_ http.Handler, w http.ResponseWriter, _ *http.Request, _ bool) bool {
			_, _ = io.WriteString(w, `{"Code":200,"Success":true,"Data":{"Files":[{"Path":"config.json","Size":`+size+`}]}}`)
			return true
		})
		n, err := ParseName("modelscope.cn/tiny/model")
		if err != nil {
			t.Fatal(err)
		}
		f, err := client(h, Options{Stall: time.Minute}).Open(t.Context(), n)
		expect(t, size, err, "lists config.json with an invalid size")
		if err == nil {
			f.Close()
		}
	}
}

func TestSearch(t *testing.T) {
	h := start(t)
	h.Add("tiny/model", files()).Count(map[string]int64{"BF16": 1000})
	h.Add("tiny/other", files())
	found, err := client(h, Options{}).Search(t.Context(), "MODEL", 10)
	if err != nil || len(found) != 1 || found[0].ModelType != "llama" || found[0].Parameters["BF16"] != 1000 {
		t.Error(found, err)
	}
}

// Memory has no influence on the bytes.
func TestLittleMemory(t *testing.T) {
	h := start(t)
	h.Add("tiny/model", files())
	f := open(t, client(h, Options{Memory: 1 << 20}), "hf.co/tiny/model")
	expectAll(f, files())
	checkAll(t, f, files())
	if err := f.Verify(t.Context()); err != nil {
		t.Error(err)
	}
	if !slices.ContainsFunc(h.Requests(), func(r hubtest.Request) bool { return r.CDN }) {
		t.Error("nothing came from the CDN")
	}
}
