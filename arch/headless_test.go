package arch_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/ingotml/ingot/arch"
	"github.com/ingotml/ingot/arch/config"
	"github.com/ingotml/ingot/arch/table"
)

// baseOf returns the class without a head of one with it; "" = it has none.
func baseOf(class string) string {
	if stem, ok := config.CutClass(class); ok && !isListed(stem+config.BaseClass) {
		return stem + config.BaseClass
	}
	return ""
}

func isListed(class string) bool {
	return slices.ContainsFunc(arch.All(), func(a arch.Arch) bool { return slices.Contains(a.Architectures, class) })
}

func setClass(t *testing.T, config []byte, class string) []byte {
	t.Helper()
	out, _, _, err := arch.Reclassed(config, class, "")
	if err != nil {
		t.Fatalf("%s: %v", class, err)
	}
	return out
}

// Of every type, a checkpoint without its head is one of the class without, under any prefix, and fits that class's
// table. With the head it is one of the class with, whatever it declares.
func TestHeadDecidesTheClass(t *testing.T) {
	settled, kept := 0, 0
	for _, c := range checkpoints(t) {
		m := c.detect(t)
		class := m.Facts().Architecture
		base := baseOf(class)
		if base == "" || slices.ContainsFunc(arch.All(), func(a arch.Arch) bool {
			return a.DraftOnly && slices.Contains(a.Architectures, class)
		}) {
			continue
		}
		have := c.have(t)
		data, same, note, err := arch.SettleHead(c.Config, m, have)
		if err != nil || note != "" || same != m || string(data) != string(c.Config) {
			t.Errorf("%s as published: %q, %v", c.Name, note, err)
		}
		n := m.Table().Names()
		headed := arch.HasOutput(m, have)
		without := slices.DeleteFunc(slices.Clone(have), func(h table.TensorInfo) bool {
			own, _ := n.Canonical(h.Name)
			return arch.HasOutput(m, []table.TensorInfo{h}) || own == "lm_head.bias" || own == "lm_head.linear.bias"
		})
		declared := setClass(t, c.Config, base)
		if !slices.Contains([]string{base, strings.TrimSuffix(base, config.BaseClass) + config.TextClass}, class) && headed {
			kept++
			if _, m, note, err := arch.SettleHead(declared, mustDetect(t, string(declared)), have); err != nil ||
				!arch.HasHead(m) ||
				!strings.Contains(note, "but the checkpoint has an output head") {
				t.Errorf("%s with its head as %s: %q, %v", c.Name, base, note, err)
			}
		}
		for _, data := range [][]byte{c.Config, declared} {
			if string(data) == string(c.Config) && config.CommonOf(m).TieEmbeddings {
				continue
			}
			settled++
			config, m, note, err := arch.SettleHead(data, mustDetect(t, string(data)), without)
			if err != nil || arch.HasHead(m) || note == "" {
				t.Errorf("%s without its head: %q, %v", c.Name, note, err)
				continue
			}
			if _, err := m.Table().Check(without); err != nil {
				t.Errorf("%s without its head: %v", c.Name, err)
			}
			if again := mustDetect(t, string(config)); arch.HasHead(again) {
				t.Errorf("%s without its head: its config.json has one", c.Name)
			}
		}
	}
	if settled < 50 || kept < 20 {
		t.Errorf("%d checkpoints without a head, %d with", settled, kept)
	}
}

// Classes of other heads stay unknown, and so do models that are no decoders.
func TestOtherHeads(t *testing.T) {
	for class, want := range map[string]string{
		"LlamaForSequenceClassification": "a head that classifies or scores texts is not supported",
		"LlamaForTokenClassification":    "a head that classifies or scores texts is not supported",
		"LlamaForRewardModel":            "a head that classifies or scores texts is not supported",
		"LlamaForQuestionAnswering":      "a head that classifies or scores texts is not supported",
		"LlamaPreTrainedModel":           "known: llama as",
		"BertModel":                      "known: llama as",
		"Qwen3Model":                     "known: llama as", // of another type
		"Model":                          "known: llama as",
	} {
		_, err := arch.Detect([]byte(`{"model_type": "llama", "architectures": ["` + class + `"]}`))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", class, err, want)
		}
	}
}
