package ollama

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ingotml/ingot/convert"
	"github.com/ingotml/ingot/convert/gguf"
	"github.com/ingotml/ingot/convert/gguf/gguftest"
	"github.com/ingotml/ingot/manifest"
	"github.com/ingotml/ingot/manifest/ollama/ollamatest"
	"github.com/ingotml/ingot/modelfile"
	"github.com/ingotml/ingot/quantize/ggml"
	"github.com/ingotml/ingot/server/servertest"
	"github.com/opencontainers/go-digest"
)

func nameOf(t *testing.T, text string) manifest.Name {
	t.Helper()
	n, err := manifest.ParseName(text)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// A GGUF file that is uploaded or pulled becomes the model that `ingot create` makes of it.
func TestGGUF(t *testing.T) {
	t.Setenv("DOCKER_CONFIG", t.TempDir())
	path := filepath.Join(servertest.Root(t), "convert", "testdata", "gguf", "llama-rope-llama3.gguf")
	file, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	f := serve(t, nil)
	store := f.Options().Store
	from := &modelfile.File{Commands: []modelfile.Command{{Name: modelfile.From, Value: path}}}
	name := nameOf(t, "local")
	want, err := convert.Create(t.Context(), store, name, from, convert.Options{})
	if err != nil {
		t.Fatal(err)
	}
	d := digest.FromBytes(file).String()
	f.Has(t, "POST", "/api/blobs/"+d, string(file), 201)
	f.Has(t, "POST", "/api/create", fmt.Sprintf(`{"model":"up","files":{"some.GGUF":%q},"stream":false}`, d), 200,
		"success")
	if e, err := store.Resolve(t.Context(), nameOf(t, "up")); err != nil || e.Digest != want.Digest {
		t.Errorf("created %s, %v, want %s", e.Digest, err, want.Digest)
	}
	upload := func(content []byte) string {
		d := digest.FromBytes(content).String()
		f.Has(t, "POST", "/api/blobs/"+d, string(content), 201)
		return d
	}
	projector := gguftest.Llama(ggml.F16)
	projector.Set("general.architecture", gguf.Text("clip"))
	f.Has(t, "POST", "/api/create", fmt.Sprintf(`{"model":"beside","files":{"a.gguf":%q,"b":%q},"stream":false}`,
		upload(projector.Bytes(t)), d), 200, "success")
	if e, err := store.Resolve(t.Context(), nameOf(t, "beside")); err != nil || e.Digest != want.Digest {
		t.Errorf("beside a projector: created %s, %v, want %s", e.Digest, err, want.Digest)
	}
	other := upload([]byte("\x02\x00\x00\x00\x00\x00\x00\x00{}"))
	f.Has(t, "POST", "/api/create", fmt.Sprintf(`{"model":"two","files":{"a":%q,"b":%q}}`, d, other), 400,
		"both have weights")
	f.Has(t, "POST", "/api/create", fmt.Sprintf(`{"model":"two","files":{"a.gguf":%q,"b.gguf":%q}}`, d, d), 400,
		"several GGUF models: a.gguf, b.gguf")
	bad := digest.FromString("no file").String()
	f.Has(t, "POST", "/api/blobs/"+bad, "no file", 201)
	status, text := f.Ask(t, "POST", "/api/create", fmt.Sprintf(`{"model":"bad","files":{"a.gguf":%q}}`, bad))
	if status != 400 || !strings.Contains(text, "a.gguf") || strings.Contains(text, store.Root()) {
		t.Errorf("%d: %s", status, text)
	}

	image := ollamatest.New(t, [2]string{"model", string(file)}, [2]string{"system", "You answer."},
		[2]string{"params", `{"temperature": 0.25}`})
	pulled := image.Serve(t)
	status, text = f.Ask(t, "POST", "/api/pull", fmt.Sprintf(`{"model":%q}`, pulled))
	if status != 200 || !strings.Contains(text, "converting model") ||
		!strings.HasSuffix(strings.TrimSpace(text), `{"status":"success"}`) {
		t.Fatalf("%d: %s", status, text)
	}
	f.Has(t, "POST", "/api/show", fmt.Sprintf(`{"model":%q}`, pulled), 200, `"system":"You answer."`)
	broken := ollamatest.New(t, [2]string{"model", "no file"}).Serve(t)
	f.Has(t, "POST", "/api/pull", fmt.Sprintf(`{"model":%q,"stream":false}`, broken), 400, "GGUF")
}
