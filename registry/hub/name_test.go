package hub

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"
)

func TestParseName(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"hf.co/Qwen/Qwen3-0.6B", "hf.co/Qwen/Qwen3-0.6B"},
		{"huggingface.co/Qwen/Qwen3-0.6B", "hf.co/Qwen/Qwen3-0.6B"},
		{"hf://Qwen/Qwen3-0.6B@main", "hf.co/Qwen/Qwen3-0.6B@main"},
		{"https://huggingface.co/Qwen/Qwen3-0.6B/", "hf.co/Qwen/Qwen3-0.6B"},
		{"https://huggingface.co/Qwen/Qwen3-0.6B/tree/refs%2Fpr%2F1", "hf.co/Qwen/Qwen3-0.6B@refs/pr/1"},
		{"hf.co/gpt2", "hf.co/gpt2"},
		{"hf.co/a/b@refs/pr/1", "hf.co/a/b@refs/pr/1"},
		{"hf.co/a/b:Q4_K_M", "hf.co/a/b:Q4_K_M"},
		{"hf.co/a/b@v1:x/y.gguf", "hf.co/a/b@v1:x/y.gguf"},
		{"modelscope.cn/Qwen/Qwen3-0.6B", "modelscope.cn/Qwen/Qwen3-0.6B"},
		{"hf.co/a/b/c", ""}, {"hf.co/a/..", ""}, {"hf.co/a/b--c", ""}, {"hf.co/a/b@", ""}, {"hf.co/a/b:", ""},
		{"hf.co/a/b@../x", ""}, {"hf.co//b", ""}, {"modelscope.cn/b", ""}, {"hf.co/a/-b", ""},
		{"hf.co/a/b@x y", ""}, {"ghcr.io/a/b", ""}, {"hf.co/a/b:x//", ""}, {"hf.co/a/b:/x", ""},
	} {
		n, err := ParseName(c.text)
		if c.want == "" != (err != nil) || err == nil && n.String() != c.want {
			t.Errorf("%s: %s, %v", c.text, n, err)
		}
		if err != nil && !errors.Is(err, ErrName) {
			t.Errorf("%s: %v", c.text, err)
		}
	}
	if IsName("hf.co") || IsName("./hf.co/a/b") || !IsName("HF.co/a") {
		t.Error("IsName")
	}
}

func TestEnvironment(t *testing.T) {
	home := t.TempDir()
	if err := os.WriteFile(filepath.Join(home, "token"), []byte("hf_file\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		env  map[string]string
		want Options
		bad  bool
	}{
		{map[string]string{"HF_HOME": home}, Options{Token: "hf_file", Cache: filepath.Join(home, "hub")}, false},
		{map[string]string{"HF_HOME": home, "HF_TOKEN": " hf_env\n"},
			Options{Token: "hf_env", Cache: filepath.Join(home, "hub")}, false},
		{map[string]string{"HF_HOME": home, "HF_HUB_DISABLE_IMPLICIT_TOKEN": "1", "HF_HUB_CACHE": "/c"},
			Options{Cache: "/c"}, false},
		{map[string]string{"HF_TOKEN_PATH": filepath.Join(home, "token"), "HF_HUB_OFFLINE": "yes", "HF_HUB_CACHE": "/c"},
			Options{Token: "hf_file", Offline: true, Cache: "/c"}, false},
		{map[string]string{"HF_ENDPOINT": "https://mirror.example/", "HF_HUB_DOWNLOAD_TIMEOUT": "3", "HF_HUB_CACHE": "/c"},
			Options{Endpoint: "https://mirror.example", Stall: 3 * time.Second, Cache: "/c"}, false},
		{map[string]string{"HF_ENDPOINT": "mirror.example"}, Options{}, true},
		{map[string]string{"HF_ENDPOINT": "https://user:password@mirror.example"}, Options{}, true},
		{map[string]string{"HF_HUB_DOWNLOAD_TIMEOUT": "0"}, Options{}, true},
		{map[string]string{"HF_TOKEN": "two\x01words"}, Options{}, true},
		{map[string]string{"HF_TOKEN_PATH": home, "HF_HUB_CACHE": "/c"}, Options{Cache: "/c"}, false}, // not a file
	} {
		o, err := Environment(func(name string) string { return c.env[name] })
		if (err != nil) != c.bad {
			t.Errorf("%v: %v", c.env, err)
		}
		got := []any{o.Endpoint, o.Token, o.Offline, o.Cache, o.Stall}
		want := []any{c.want.Endpoint, c.want.Token, c.want.Offline, c.want.Cache, c.want.Stall}
		if !c.bad && !slices.Equal(got, want) {
			t.Errorf("%v: %v, want %v", c.env, got, want)
		}
	}
}

func FuzzParseName(f *testing.F) {
	for _, s := range []string{
		"hf.co/a/b@v1:x", "hf://a", "hf://a:b//", "https://huggingface.co/a/b/tree/main", "modelscope.cn/a/b",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		n, err := ParseName(s)
		if err != nil {
			return
		}
		if again, err := ParseName(n.String()); err != nil || again != n {
			t.Errorf("%q: %+v, then %+v, %v", s, n, again, err)
		}
	})
}
