package convert

import (
	"slices"
	"testing"

	"github.com/ingotml/ingot/manifest"
	"github.com/ingotml/ingot/manifest/settings"
	"github.com/ingotml/ingot/modelfile"
)

func TestDescribe(t *testing.T) {
	line := func(name, value string) modelfile.Command { return modelfile.Command{Name: name, Value: value} }
	for _, c := range []struct {
		name, config string
		files        map[string]string
		lines        []modelfile.Command
		want         []string
		record       string
	}{
		{"plain", tinyConfig, nil, nil, []string{"completion"}, ""},
		{
			"family", moeConfig, nil, nil, []string{"completion", "tools", "thinking"},
			`{"parser":"qwen3","renderer":"qwen3-coder"}`,
		},
		{"lines win", moeConfig, nil, []modelfile.Command{line(modelfile.Parser, "mine"), line(modelfile.Renderer, "yours")},
			[]string{"completion", "tools", "thinking"},
			`{"parser":"mine","renderer":"yours"}`},
		{
			"template", tinyConfig, map[string]string{"chat_template.jinja": "{% if tools is defined %}x{% endif %}"}, nil,
			[]string{"completion", "tools"}, "",
		},
		{
			"template of the tokenizer", tinyConfig,
			map[string]string{"tokenizer_config.json": `{"chat_template": "{{ '<think>' }}"}`}, nil,
			[]string{"completion", "thinking"}, "",
		},
		{"named templates", tinyConfig, map[string]string{"tokenizer_config.json": `{"chat_template": [` +
			`{"name": "tool_use", "template": "{{ tools }}"}, {"name": "default", "template": ""}]}`},
			nil, []string{"completion", "tools"}, ""},
		{
			"template in JSON", tinyConfig,
			map[string]string{"chat_template.json": `{"chat_template": "{%- for t in tools %}"}`}, nil,
			[]string{"completion", "tools"}, "",
		},
		{"calls in a template", tinyConfig, map[string]string{"chat_template.jinja": "{{ '<think></think><tool_call>' " +
			"}}{\"name\":, \"arguments\":"}, nil,
			[]string{"completion", "tools", "thinking"}, `{"parser":"hermes"}`},
		{
			"thinking in a template", tinyConfig, map[string]string{"chat_template.jinja": "{{ '[THINK]' }}[/THINK]"}, nil,
			[]string{"completion", "thinking"}, `{"parser":"thinking"}`,
		},
		{
			"a switch for thinking without tags", tinyConfig,
			map[string]string{"chat_template.jinja": "{% if enable_thinking %}Enable deep thinking.{% endif %}"}, nil,
			[]string{"completion", "thinking"}, `{"parser":"thinking"}`,
		},
		{"a line over the template", tinyConfig, map[string]string{"chat_template.jinja": "[TOOL_CALLS]"},
			[]modelfile.Command{line(modelfile.Parser, "passthrough")},
			[]string{"completion"}, `{"parser":"passthrough"}`},
		{"TEMPLATE over the template", tinyConfig, map[string]string{"chat_template.jinja": "[TOOL_CALLS]"},
			[]modelfile.Command{line(modelfile.Template, "{{ range .Tools }}<tool_call> arguments{{ end }}")},
			[]string{"completion", "tools"}, `{"parser":"hermes"}`},
		{
			"words in a text", tinyConfig, map[string]string{"chat_template.jinja": "You have no tools."}, nil,
			[]string{"completion"}, "",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			ck := tiny(t, c.config, 1)
			for name, text := range c.files {
				ck.files[name] = text
			}
			store := openStore(t)
			mustCreate(t, store, "x", from(ck.write(t, t.TempDir()), c.lines...), Options{})
			img := mustResolve(t, store, "x").Image
			if !slices.Equal(img.Config.Capabilities, c.want) {
				t.Errorf("capabilities %q, want %q", img.Config.Capabilities, c.want)
			}
			_, has := img.Find(manifest.KindFile, settings.RecordName)
			if has != (c.record != "") || has && readLayer(t, store, img, manifest.KindFile, settings.RecordName) != c.record {
				t.Errorf("record: %v, want %s", has, c.record)
			}
			for name := range c.files {
				if _, ok := img.Find(manifest.KindFile, name); !ok {
					t.Errorf("the image lacks %s", name)
				}
			}
			again := mustCreate(t, store, "y", parsed(t, "FROM x"), Options{})
			if d := mustResolve(t, store, "x").Digest; again.Digest != d {
				t.Errorf("made from the image: %s, want %s", again.Digest, d)
			}
		})
	}
}
