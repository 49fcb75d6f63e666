package manifest_test

import (
	"bytes"
	"testing"

	"github.com/ingotml/ingot/manifest"
	"github.com/ingotml/ingot/manifest/store/storetest"
	"github.com/modelpack/model-spec/schema"
)

// The specification's own validator accepts the configs, and rejects an additional field.
func TestConfigFollowsModelSpecSchema(t *testing.T) {
	minimal := manifest.Image{Layers: []manifest.Layer{sampleLayer(manifest.KindTensor, "w", "", 1)}}
	all := sampleImage()
	all.Config.Quantization = "mxfp4"
	all.Config.Capabilities = []string{manifest.CapCompletion, manifest.CapEmbedding, manifest.CapVision,
		manifest.CapAudio, manifest.CapTools, manifest.CapThinking}
	for _, img := range []manifest.Image{minimal, sampleImage(), all} {
		_, config := storetest.MustEncode(t, img)
		if err := schema.ValidatorMediaTypeModelConfig.Validate(bytes.NewReader(config)); err != nil {
			t.Errorf("%s: %v", config, err)
		}
		extra := bytes.Replace(config, []byte(`"config":{`), []byte(`"config":{"context_length":1,`), 1)
		if err := schema.ValidatorMediaTypeModelConfig.Validate(bytes.NewReader(extra)); err == nil {
			t.Errorf("%s: an additional field is accepted", extra)
		}
	}
}
