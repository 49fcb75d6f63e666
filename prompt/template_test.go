package prompt

import (
	"errors"
	"testing"

	"github.com/ingotml/ingot/internal/limits"
	"github.com/ingotml/ingot/manifest"
	"github.com/ingotml/ingot/manifest/store"
)

// A template file that exceeds the limit is rejected before it is read into memory.
func TestLargeTemplateFile(t *testing.T) {
	st, err := store.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for size, want := range map[int]error{limits.TemplateFile: nil, limits.TemplateFile + 1: manifest.ErrTooLarge} {
		d, _, err := st.PutBytes(t.Context(), make([]byte, size))
		if err != nil {
			t.Fatal(err)
		}
		entry := &store.Entry{Image: manifest.Image{Layers: []manifest.Layer{{Kind: manifest.KindFile,
			Name: "chat_template.jinja", Digest: d}}}}
		s, err := Open(st, entry)
		if err != nil {
			t.Fatal(err)
		}
		n, err := s.Templates.Get("")
		if !errors.Is(err, want) || want == nil && len(n.Text) != size || !s.HasTemplate() {
			t.Errorf("%d bytes: got %d bytes, %v, want %v", size, len(n.Text), err, want)
		}
	}
}
