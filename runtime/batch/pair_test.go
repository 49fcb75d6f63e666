package batch

import (
	"slices"
	"testing"

	"github.com/ingotml/ingot/modelfile"
	"github.com/ingotml/ingot/models/modeltest"
	"github.com/ingotml/ingot/runtime"
	"github.com/ingotml/ingot/runtime/runtimetest"
)

// With a draft that was trained for it, the model generates the same tokens as without, in as few steps as the
// reference implementation needs with the same pair.
func TestTrainedPair(t *testing.T) {
	const pair = "gemma4_assistant-pair"
	l := loadModel(t, "gemma4-pair", modelfile.Command{Name: modelfile.Draft, Value: modeltest.Dir(pair)})
	steps, depth := modeltest.Golden[int32](t, pair, "steps"), modeltest.Golden[int32](t, pair, "depth")[0]
	prompts, greedy := modeltest.Golden[int32](t, pair, "prompts"), modeltest.Golden[int32](t, pair, "greedy")
	prompt, length := len(prompts)/len(steps), len(greedy)/len(steps)
	took, want := 0, 0
	for i := range steps {
		r := runtime.Request{Prompt: prompts[i*prompt : (i+1)*prompt], MaxTokens: length, IgnoreEOS: true,
			Draft: runtime.Draft{Mode: runtime.DraftFixed, N: int(depth)}}
		ids, _, last, err := runtimetest.Collect(t.Context(), l, r)
		if err != nil {
			t.Fatal(err)
		}
		if text := greedy[i*length : (i+1)*length]; !slices.Equal(ids, text) {
			t.Errorf("prompt %d: %v, want %v", i, ids, text)
		}
		s := last.Stats
		if s.TargetSteps+s.Accepted != length {
			t.Errorf("prompt %d: %d tokens of %d steps with %d accepted", i, length, s.TargetSteps, s.Accepted)
		}
		t.Logf("prompt %d: %d steps, the reference %d; %d of %d drafts accepted", i, s.TargetSteps, steps[i], s.Accepted,
			s.Drafted)
		took, want = took+s.TargetSteps, want+int(steps[i])
	}
	if float64(took) > 1.1*float64(want) {
		t.Errorf("%d steps of the target, the reference needs %d", took, want)
	}
}
