package interop

import (
	"strings"
	"testing"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

// TestRoundTrip: a pulled model has the digest and bytes that were pushed, in both encodings, with paths of any depth.
func TestRoundTrip(t *testing.T) {
	eachRegistry(t, func(t *testing.T, host string) {
		maker, reader := newUser(t), newUser(t)
		digest := maker.create("model", "llama-sharded")
		for _, name := range []string{host + "/model:latest", host + "/team/a/b/c/d.e_f:v1.0"} {
			equal(t, "pushed digest", maker.ingot("push", "model", name), digest)
			equal(t, "pulled digest", reader.ingot("pull", name), digest)
			equal(t, "pulled manifest", reader.manifest(name), maker.manifest("model:latest"))
			equal(t, "show --manifest", reader.ingot("show", "--manifest", name), reader.manifest(name))
			url, tag := repository(t, name)
			resp, b := get(t, url+"/manifests/"+tag, "Accept", ocispec.MediaTypeImageManifest)
			equal(t, "media type", resp.Header.Get("Content-Type"), ocispec.MediaTypeImageManifest)
			equal(t, "manifest in the registry", string(b), maker.manifest("model:latest"))
		}

		ollama := host + "/library/model:q"
		pushed := maker.ingot("push", "model", ollama, "--format", "ollama")
		if pushed == digest {
			t.Error("the ollama encoding has the digest of the other one")
		}
		equal(t, "pushed again", maker.ingot("push", "model", ollama, "--format", "ollama"), pushed)
		equal(t, "pulled digest, ollama", reader.ingot("pull", ollama), pushed)
		reader.ingot("cp", ollama, "back", "--format", "modelpack")
		equal(t, "manifest after ollama and back", reader.manifest("back:latest"), maker.manifest("model:latest"))

		// A second pull transfers nothing, by tag and by digest.
		equal(t, "pulled again", reader.ingot("pull", host+"/model"), digest)
		equal(t, "pulled by digest", newUser(t).ingot("pull", host+"/model@"+digest), digest)
	})
}

// TestQuantizedRoundTrip: scales and biases are stored beside the weights.
func TestQuantizedRoundTrip(t *testing.T) {
	host := startDistribution(t, "")
	maker, reader := newUser(t), newUser(t)
	name := host + "/quantized:int4"
	digest := maker.create(name, "demo", "-q", "int4")
	equal(t, "pushed digest", maker.ingot("push", name), digest)
	equal(t, "pulled digest", reader.ingot("pull", name), digest)
	equal(t, "tensors", reader.ingot("show", "--tensors", name), maker.ingot("show", "--tensors", name))
}

// TestFineTune: a model that shares most blobs with another one transfers only the rest, in any repository.
func TestFineTune(t *testing.T) {
	host := startDistribution(t, "")
	maker, reader := newUser(t), newUser(t)
	maker.create(host+"/base:v1", "llama-default")
	maker.ingot("push", host+"/base:v1")
	maker.create(host+"/tuned:v1", "llama-default", "-q", "int8") // norms and files are unchanged
	want := maker.ingot("push", host+"/tuned:v1")
	reader.ingot("pull", host+"/base:v1")
	equal(t, "pulled digest", reader.ingot("pull", host+"/tuned:v1"), want)
}

// TestUnknownNames: a missing model gives one clear error.
func TestUnknownNames(t *testing.T) {
	eachRegistry(t, func(t *testing.T, host string) {
		u := newUser(t)
		if got := u.ingotFails("pull", host+"/none:v1"); !strings.Contains(got, host+"/none") {
			t.Errorf("the error does not name the model: %s", got)
		}
		if got := u.ingotFails("push", "none", host+"/none:v1"); !strings.Contains(got, "none") {
			t.Errorf("the error does not name the model: %s", got)
		}
	})
}
