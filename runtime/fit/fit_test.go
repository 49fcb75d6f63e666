package fit

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/ingotml/ingot/arch"
	_ "github.com/ingotml/ingot/arch/types"
	"github.com/ingotml/ingot/runtime"
)

func model(t *testing.T, name string) arch.Model {
	t.Helper()
	config, err := os.ReadFile(filepath.Join("..", "..", "testdata", "models", name, "config.json"))
	if err != nil {
		t.Fatal(err)
	}
	m, err := arch.Detect(config)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// The state grows with the context, up to the model's own, and less with packed keys and values.
func TestNeed(t *testing.T) {
	m := model(t, "demo")
	limit := int(m.Facts().Context)
	short, whole := Need(m, 1000, Use{Context: limit / 2}), Need(m, 1000, Use{Context: limit})
	if short.Weights != 1000 || short.State*2 != whole.State || whole.Total() <= whole.Weights+whole.State {
		t.Errorf("half the context %+v, all of it %+v", short, whole)
	}
	if beyond := Need(m, 1000, Use{Context: 10 * limit}); beyond != whole {
		t.Errorf("beyond the context %+v, want %+v", beyond, whole)
	}
	packed := Need(m, 0, Use{Context: limit, KV: runtime.KVQ8})
	wide := Need(m, 0, Use{Context: limit, Float32s: true})
	if packed.State*2 <= whole.State || packed.State >= whole.State || wide.State != 2*whole.State {
		t.Errorf("plain %d bytes, q8 %d, float32 %d", whole.State, packed.State, wide.State)
	}
}
