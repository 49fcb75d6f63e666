package prompt

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/ingotml/ingot/chat"
	"github.com/ingotml/ingot/manifest/settings"
)

// trainedWith has the digests of the texts that the models are trained with, with {} for the tools.
// https://huggingface.co/deepseek-ai/DeepSeek-V4-Flash/blob/main/encoding/encoding_dsv4.py
var trainedWith = map[string]string{
	"deepseek4 tools":   "f59729735bca3234eb7466917a62b9871f90ce37a968e494de279df8e1595b69",
	"deepseek3.2 tools": "2aaf30cc6c0364485d4e325cba58d6aae9f21cbbfea70c3178973a05de261754",
	"deepseek4 effort":  "f7a24f3b3050d4a83781e9b755b316aae2ec1d9dc87562541d90bcb04d7350f7",
}

// Prompts of models that are published without a template are those of testdata/gen/chat/deepseek.py.
func TestDeepSeekPrompts(t *testing.T) {
	data, err := os.ReadFile("testdata/deepseek.json")
	if err != nil {
		t.Fatal(err)
	}
	var cases []struct {
		Format, Name, Effort, Schemas, Prompt string
		Messages                              []chat.Message
		Tools                                 []chat.Tool
		Think                                 bool
	}
	if err := json.Unmarshal(data, &cases); err != nil || len(cases) < 30 {
		t.Fatalf("%d cases: %v", len(cases), err)
	}
	for _, c := range cases {
		name := fmt.Sprintf("%s, %s, thinking %v", c.Format, c.Name, c.Think)
		s := &Style{Texts: &settings.Texts{Record: settings.Record{Parser: c.Format}}}
		s, err := s.With(t.Context(), chat.BuiltIn(c.Format))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		r := chat.Request{
			Messages: c.Messages, Tools: c.Tools, Think: &c.Think, ThinkLevel: c.Effort, AddGenerationPrompt: true,
			BOS: "<｜begin▁of▁sentence｜>", EOS: "<｜end▁of▁sentence｜>",
		}
		with, err := s.choose(t.Context(), r)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		got, err := Render(t.Context(), unlimited{}, with.Template, with.prepared(r))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		before, after, text := c.Prompt, "", ""
		for _, part := range []string{"tools", "effort"} {
			if a, b, ok := strings.Cut(c.Prompt, "{"+part+"}"); ok {
				before, after, text = a, b, c.Format+" "+part
			}
		}
		middle, ok := strings.CutPrefix(got, before)
		middle, ok2 := strings.CutSuffix(middle, after)
		if !ok || !ok2 || (text == "") != (middle == "") {
			t.Errorf("%s:\ngot  %q\nwant %q", name, got, c.Prompt)
			continue
		}
		if c.Schemas != "" {
			middle = strings.Replace(middle, c.Schemas, "{}", 1)
		}
		if sum := fmt.Sprintf("%x", sha256.Sum256([]byte(middle))); text != "" && sum != trainedWith[text] {
			t.Errorf("%s: the text has the digest %s:\n%s", name, sum, middle)
		}
	}
}
