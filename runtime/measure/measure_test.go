package measure

import (
	"errors"
	"os"
	"testing"

	"github.com/ingotml/ingot/convert/converttest"
	"github.com/ingotml/ingot/manifest/store"
	"github.com/ingotml/ingot/mlx/mlxtest"
	"github.com/ingotml/ingot/runtime"
	"github.com/ingotml/ingot/runtime/quality"
	"github.com/ingotml/ingot/runtime/runtimetest"
)

const text = "A text of a few words is enough here, because an image is compared with itself."

// An image equals itself, its base is not needed a second time, and an image that is refused is not loaded.
func TestCompare(t *testing.T) {
	thread := mlxtest.Open(t)
	st, entry := converttest.Pack(t, "demo")
	m := Images{Store: st, Thread: thread, Options: runtime.Options{Float32: true}}
	before := runtimetest.Arrays(t)
	for range 2 {
		rows, err := m.Compare(t.Context(), entry, entry, text, nil)
		if err != nil {
			t.Fatal(err)
		}
		if r := quality.Summarize(rows); r.MeanKL.Value != 0 || r.Top1.Value != 1 || r.Tokens < 8 {
			t.Errorf("an image against itself: %+v", r)
		}
		kept, err := os.ReadDir(st.Path(store.ScoresDir))
		if err != nil || len(kept) != 1 {
			t.Errorf("%d sets of logits are kept, %v", len(kept), err)
		}
	}
	kl, err := m.MeanKL(entry.Name, text)(t.Context(), entry.Image, entry.Image)
	if err != nil || kl != 0 {
		t.Errorf("without a name: %v, %v", kl, err)
	}
	refused := errors.New("refused")
	m.Check = func(*store.Entry) error { return refused }
	if _, err := m.Compare(t.Context(), entry, entry, text, nil); !errors.Is(err, refused) {
		t.Errorf("a refused image: %v", err)
	}
	if after := runtimetest.Arrays(t); after != before {
		t.Errorf("%d arrays live after the comparisons, %d before", after, before)
	}
}
