package input

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// TestTakePictures checks that paths of picture files are removed from a prompt, with any kind of quotes.
func TestTakePictures(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	t.Setenv("HOME", dir)
	for _, name := range []string{"cat.png", "my cat.JPG", "it's.webp", "notes.txt"} {
		if err := os.WriteFile(name, []byte("x"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.MkdirAll(filepath.Join(dir, "folder.png"), 0o700); err != nil {
		t.Fatal(err)
	}
	here := filepath.ToSlash(dir)
	for _, test := range []struct {
		prompt, text   string
		paths, missing []string
	}{
		{"what is 1/2?", "what is 1/2?", nil, nil},
		{"  spaces stay  ", "  spaces stay  ", nil, nil},
		{"describe ./cat.png", "describe", []string{"./cat.png"}, nil},
		{"./cat.png", "", []string{"./cat.png"}, nil},
		{"in ./cat.png, what is it?", "in, what is it?", []string{"./cat.png"}, nil},
		{"look (./cat.png). Well?", "look (). Well?", []string{"./cat.png"}, nil},
		{"see " + here + "/cat.png!", "see!", []string{here + "/cat.png"}, nil},
		{"see ~/cat.png", "see", []string{filepath.Join(dir, "cat.png")}, nil},
		{`compare './my cat.JPG' and "./cat.png"`, "compare and", []string{"./my cat.JPG", "./cat.png"}, nil},
		{`compare ./my\ cat.JPG and ./it\'s.webp now`, "compare and now", []string{"./my cat.JPG", "./it's.webp"}, nil},
		{"say 'see ./cat.png'", "say 'see'", []string{"./cat.png"}, nil},
		{"./cat.png ./cat.png", "", []string{"./cat.png", "./cat.png"}, nil},
		{"a name: cat.png", "a name: cat.png", nil, nil},
		{"./dog.png runs", "./dog.png runs", nil, []string{"./dog.png"}},
		{"'./my dog.png' runs", "'./my dog.png' runs", nil, []string{"./my dog.png"}},
		{"https://example.org/a.png", "https://example.org/a.png", nil, nil},
		{"./folder.png and ./notes.txt", "./folder.png and ./notes.txt", nil, nil},
		{"ends in a backslash ./cat.png \\", "ends in a backslash \\", []string{"./cat.png"}, nil},
		{"'open and \"open ./cat.png", "'open and \"open", []string{"./cat.png"}, nil},
		{"...", "...", nil, nil},
	} {
		text, paths, missing := TakePictures(test.prompt)
		if text != test.text || !slices.Equal(paths, test.paths) || !slices.Equal(missing, test.missing) {
			t.Errorf("%q: %q, %q, missing %q", test.prompt, text, paths, missing)
		}
	}
}

func FuzzTakePictures(f *testing.F) {
	f.Add("see './a b.png' and ./c\\ d.png, ...")
	f.Fuzz(func(t *testing.T, prompt string) {
		if text, paths, _ := TakePictures(prompt); len(paths) == 0 && text != prompt {
			t.Errorf("%q became %q", prompt, text)
		}
	})
}
