package cmd_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/ingotml/ingot/convert/gguf"
	"github.com/ingotml/ingot/convert/gguf/gguftest"
	ft "github.com/ingotml/ingot/manifest/foreign/foreigntest"
	"github.com/ingotml/ingot/quantize/ggml"
	"github.com/ingotml/ingot/registry/registrytest"
)

// A model in several GGUF files is one model, whether its layers have names or only an order.
func TestImageFormatsSplit(t *testing.T) {
	f := gguftest.Llama(ggml.Q8_0)
	half := len(f.Tensors) / 2
	whole := string(f.Bytes(t))
	parts := []*gguftest.File{
		{Metadata: slices.Clone(f.Metadata), Tensors: f.Tensors[:half], Data: f.Data},
		{Tensors: f.Tensors[half:], Data: f.Data},
	}
	for i, p := range parts {
		p.Set("split.no", gguf.Number(uint32(i)))
		p.Set("split.count", gguf.Number(2))
		p.Set("split.tensors.count", gguf.Number(uint32(len(f.Tensors))))
	}
	first, second := string(parts[0].Bytes(t)), string(parts[1].Bytes(t))
	split := ft.Files{"m-00001-of-00002.gguf": first, "m-00002-of-00002.gguf": second}
	p, home := registrytest.New(t), t.TempDir()
	pull := func(repo string, image ft.Image) string {
		image.Push(p, repo, "v1")
		return strings.TrimSpace(ingot(t, home, "pull", p.Host()+"/"+repo+":v1", "--quiet"))
	}
	want := pull("whole", ft.Oras(t, ft.Files{"m.gguf": whole}))
	for repo, image := range map[string]ft.Image{
		"docker/unnamed": ft.ModelRunner(t, split, false, nil), "docker/named": ft.ModelRunner(t, split, true, nil),
		"modctl/zstd": ft.ModelPack(t, split, ft.Zstd), "oras/files": ft.Oras(t, split),
		"kit": ft.ModelKit(t, "",
			ft.KitPart{Type: "model", Path: "m-00001-of-00002.gguf", Files: ft.Files{"m-00001-of-00002.gguf": first}},
			ft.KitPart{Type: "modelpart", Path: "m-00002-of-00002.gguf", Files: ft.Files{"m-00002-of-00002.gguf": second}}),
	} {
		if got := pull(repo, image); got != want {
			t.Errorf("%s: %s, want %s", repo, got, want)
		}
	}
	ft.Oras(t, ft.Files{"m-00001-of-00002.gguf": first}).Push(p, "half", "v1")
	fails(t, home, "m-00002-of-00002.gguf", "pull", p.Host()+"/half:v1")
	ft.ModelRunner(t, ft.Files{"b.gguf": second, "c.gguf": first}, false, nil).Push(p, "order", "v1")
	fails(t, home, "split.no", "pull", p.Host()+"/order:v1")
}
