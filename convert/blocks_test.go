package convert

import (
	"bytes"
	"strings"
	"testing"

	"github.com/ingotml/ingot/manifest"
	"github.com/ingotml/ingot/manifest/blob"
)

// The codes of experts that OpenAI publishes in mxfp4 are in the image byte for byte: rows of gate and up are
// interleaved in the source, and one after the other in the image.
func TestBlocksAreKept(t *testing.T) {
	c, store := published(t, "../models/gpt_oss-published"), openStore(t)
	mustCreate(t, store, "x", from(c.write(t, t.TempDir())), Options{})
	entry := mustResolve(t, store, "x")
	checked := 0
	for _, l := range entry.Image.Layers {
		base, ok := strings.CutSuffix(l.Name, ".weight")
		if l.Kind != manifest.KindTensor || !ok || !strings.Contains(l.Name, ".experts.") {
			continue
		}
		meta, have := arrays(t, store, entry.Image, l.Name)
		if meta[blob.MetaType] != "mxfp4" || meta[blob.MetaRule] != "" || len(have) != 2 {
			t.Fatalf("%s: %d arrays, %v", l.Name, len(have), meta)
		}
		for i, end := range []string{"_blocks", "_scales"} {
			source := sourceTensor(c, base+end)
			if want := inOrder(source, strings.Contains(base, "gate_up")); !bytes.Equal(have[i].data, want) || len(want) == 0 {
				t.Errorf("%s: %s differ", l.Name, end)
			}
		}
		checked++
	}
	if checked != 4 {
		t.Errorf("%d tensors of experts", checked)
	}
}

// inOrder returns the rows of each expert: if they are interleaved, the even ones and then the odd ones.
func inOrder(source tensor, interleaved bool) []byte {
	if !interleaved || len(source.data) == 0 {
		return source.data
	}
	experts, rows := int(source.Shape[0]), int(source.Shape[1])
	row := len(source.data) / experts / rows
	var out []byte
	for e := range experts {
		for half := range 2 {
			for i := half; i < rows; i += 2 {
				out = append(out, source.data[(e*rows+i)*row:][:row]...)
			}
		}
	}
	return out
}
