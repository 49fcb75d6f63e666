package serve

import (
	"errors"
	"testing"

	"github.com/ingotml/ingot/manifest"
	"github.com/ingotml/ingot/manifest/store"
	"github.com/ingotml/ingot/manifest/store/storetest"
)

// A model's process opens the image that its parent has found, whatever has become of the name.
func TestRunnerOpensByDigest(t *testing.T) {
	t.Setenv("INGOT_HOME", t.TempDir()+"/store")
	s, err := store.Open("")
	if err != nil {
		t.Fatal(err)
	}
	old := storetest.PutModel(t, s, "prod", "one")
	if d := storetest.PutModel(t, s, "prod", "two"); d == old {
		t.Fatal("the images are the same")
	}
	for _, name := range []string{"prod:latest", "removed:v1"} {
		_, entry, err := openImage(t.Context(), name+"@"+old.String())
		if err != nil || entry.Digest != old || entry.Name.String() != name {
			t.Errorf("%s: %v, %v", name, entry, err)
		}
	}
	_, _, err = openImage(t.Context(), "prod@"+storetest.SomeDigest.String())
	if !errors.Is(err, manifest.ErrBlobMissing) {
		t.Error(err)
	}
}
