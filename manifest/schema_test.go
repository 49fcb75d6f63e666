package manifest

import (
	"bytes"
	"testing"

	"github.com/modelpack/model-spec/schema"
)

// The specification's own validator accepts the configs, and rejects an additional field.
func TestConfigFollowsModelSpecSchema(t *testing.T) {
	minimal := Image{Layers: []Layer{sampleLayer(KindTensor, "w", "", 1)}}
	all := sampleImage()
	all.Config.Quantization = "mxfp4"
	all.Config.Capabilities = []string{CapCompletion, CapEmbedding, CapVision, CapAudio, CapTools, CapThinking}
	for _, img := range []Image{minimal, sampleImage(), all} {
		_, config := mustEncode(t, img)
		if err := schema.ValidatorMediaTypeModelConfig.Validate(bytes.NewReader(config)); err != nil {
			t.Errorf("%s: %v", config, err)
		}
		extra := bytes.Replace(config, []byte(`"config":{`), []byte(`"config":{"context_length":1,`), 1)
		if err := schema.ValidatorMediaTypeModelConfig.Validate(bytes.NewReader(extra)); err == nil {
			t.Errorf("%s: an additional field is accepted", extra)
		}
	}
}
