package index

import (
	"slices"
	"testing"
	"time"

	"github.com/ingotml/ingot/manifest"
	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

func mustName(t *testing.T, s string) manifest.Name {
	t.Helper()
	n, err := manifest.ParseName(s)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// indexOf lists an entry for each name; its digest is that of the name.
func indexOf(t *testing.T, names ...string) (idx ocispec.Index) {
	t.Helper()
	for _, name := range names {
		d := ocispec.Descriptor{Digest: digest.FromString(name)}
		Describe(&d, mustName(t, name), 1, "llama", time.Unix(0, 0))
		idx.Manifests = append(idx.Manifests, d)
	}
	return idx
}

func TestLookup(t *testing.T) {
	idx := indexOf(t, "m", "m:int4", "reg.example/a/m")
	for want, have := range map[string]string{
		"m":                               "m",
		"m:latest":                        "m",
		"m:int4":                          "m:int4",
		"m:int8":                          "",
		"reg.example/a/m":                 "reg.example/a/m",
		"reg.example/b/m":                 "",
		"m@" + string(digestOf("m")):      "m",
		"m@" + string(digestOf("m:int4")): "m:int4",
		"m@" + string(digestOf("other")):  "",
	} {
		d, name, ok := Lookup(idx, mustName(t, want))
		if ok != (have != "") || ok && (d.Digest != digestOf(have) || name != WithTag(mustName(t, have))) {
			t.Errorf("%s: found %s, %v, want %q", want, name, ok, have)
		}
		found := NewFinder(idx).All(mustName(t, want))
		if len(found) != len(slices.DeleteFunc([]string{have}, func(s string) bool { return s == "" })) {
			t.Errorf("%s: a finder finds entries %v, want %q", want, found, have)
		}
	}
}

func digestOf(name string) digest.Digest { return digest.FromString(name) }

// A name takes the case of the entry that it means; an entry of exactly this name comes first.
func TestExisting(t *testing.T) {
	idx := indexOf(t, "Qwen:Q4", "qwen:q8", "Llama")
	for want, have := range map[string]string{
		"qwen:q4": "Qwen:Q4",
		"QWEN:Q8": "qwen:q8",
		"qwen:q8": "qwen:q8",
		"Qwen:q8": "qwen:q8",
		"LLAMA":   "Llama:latest",
		"llama:x": "Llama:x",
		"phi":     "phi:latest",
	} {
		if got := Existing(idx, mustName(t, want)).String(); got != have {
			t.Errorf("%s: %s, want %s", want, got, have)
		}
	}
}

// A replaced entry keeps its position, and entries of other tools stay as they are.
func TestReplace(t *testing.T) {
	idx := indexOf(t, "a", "b", "c")
	idx.Manifests[1].Annotations = map[string]string{"of": "another tool"}
	replaced := indexOf(t, "a").Manifests[0]
	replaced.Digest = digestOf("new")
	Replace(&idx, WithTag(mustName(t, "a")), replaced)
	added := indexOf(t, "d").Manifests[0]
	Replace(&idx, WithTag(mustName(t, "d")), added)
	var got []digest.Digest
	for _, d := range idx.Manifests {
		got = append(got, d.Digest)
	}
	if want := []digest.Digest{digestOf("new"), digestOf("b"), digestOf("c"), digestOf("d")}; !slices.Equal(got, want) {
		t.Errorf("entries %v, want %v", got, want)
	}
}

func TestNotFound(t *testing.T) {
	err := NotFound(indexOf(t, "qwen3", "reg.example/me/qwen:int4", "llama"), mustName(t, "qwen"))
	const want = "model qwen:latest not found in the store; " +
		"similar names: qwen3:latest, reg.example/me/qwen:int4"
	if err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
	if e := NotFound(ocispec.Index{}, mustName(t, "qwen")).(*NotFoundError); !e.Empty {
		t.Error("an empty index is not reported as empty")
	}
}

func TestParse(t *testing.T) {
	for text, want := range map[string]string{
		`{"schemaVersion":2,"manifests":[]}`: "",
		``:                                   "it is empty",
		`[]`:                                 "it is not a JSON object",
		`{"schemaVersion":2}`:                "it has no list of manifests",
		`{"schemaVersion":1,"manifests":[]}`: "its schema version is 1, not 2",
		`{"schemaVersion":2,"manifests":[],"Manifests":[]}`:     `key "Manifests" occurs twice`,
		`{"schemaVersion":2,"manifests":[{"size":1,"size":2}]}`: `key "size" occurs twice`,
		`{"schemaVersion":2,"mediaType":"text/plain","manifests":[]}`: `its media type is "text/plain", not ` +
			ocispec.MediaTypeImageIndex,
	} {
		_, err := Parse([]byte(text))
		if got := message(err); got != want {
			t.Errorf("%s: %s, want %s", text, got, want)
		}
	}
}

func message(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
