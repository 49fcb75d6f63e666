package convert

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ingotml/ingot/convert/source"
)

// The pooling module's configuration, in a subfolder, is imported.
func TestPoolingFile(t *testing.T) {
	const list = `[{"path":"","type":"sentence_transformers.models.Transformer"},` +
		`{"path":"PATH","type":"sentence_transformers.models.Pooling"}]`
	for name, c := range map[string]struct {
		modules, folder, content string
		want                     string // the imported file, or a part of the error
		bad                      bool
	}{
		"by the list":      {strings.Replace(list, "PATH", "2_Pool", 1), "2_Pool", `{}`, "2_Pool/config.json", false},
		"without a list":   {"", "1_Pooling", `{}`, "1_Pooling/config.json", false},
		"absent":           {strings.Replace(list, "PATH", "2_Pool", 1), "1_Pooling", `{}`, "", false},
		"none":             {`[]`, "1_Pooling", `{}`, "", false},
		"outside":          {strings.Replace(list, "PATH", "../x", 1), "x", `{}`, `"../x" is not a folder`, true},
		"absolute":         {strings.Replace(list, "PATH", "/etc", 1), "x", `{}`, `"/etc" is not a folder`, true},
		"a draft's":        {strings.Replace(list, "PATH", "draft", 1), "draft", `{}`, "not a folder", true},
		"no JSON":          {"", "1_Pooling", `{`, "the JSON ends too early", true},
		"a list of others": {`{}`, "x", `{}`, "modules.json", true},
	} {
		t.Run(name, func(t *testing.T) {
			check := tiny(t, tinyConfig, 1)
			if c.modules != "" {
				check.files["modules.json"] = c.modules
			}
			dir := check.write(t, t.TempDir())
			if err := os.MkdirAll(filepath.Join(dir, c.folder), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(dir, c.folder, source.ConfigName), []byte(c.content), 0o644); err != nil {
				t.Fatal(err)
			}
			inv, err := source.Open(dir, source.Options{})
			if c.bad {
				if !errors.Is(err, source.ErrSource) || !strings.Contains(err.Error(), c.want) {
					t.Errorf("got %v, want %q", err, c.want)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			defer inv.Close()
			var got []string
			for _, f := range inv.Files {
				if strings.Contains(f.Name, "/") {
					got = append(got, f.Name)
				}
			}
			if strings.Join(got, " ") != c.want || !slices.IsSortedFunc(inv.Files,
				func(a, b source.File) int { return strings.Compare(a.Name, b.Name) }) {
				t.Errorf("files %v, want %q", got, c.want)
			}
		})
	}
}
