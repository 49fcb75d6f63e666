package hub

import (
	"strings"
	"testing"
)

// Addresses as browsers show them, of pages, files and mirrors, are names.
func TestAddresses(t *testing.T) {
	t.Setenv("HF_ENDPOINT", "https://mirror.example/hf/")
	commit := strings.Repeat("ab", 20)
	for text, want := range map[string]string{
		"https://huggingface.co/a/b/blob/main/config.json":                        "hf.co/a/b@main",
		"https://huggingface.co/a/b/resolve/main/model.safetensors?download=true": "hf.co/a/b@main",
		"https://huggingface.co/a/b/blob/main/x-Q4_K_M.gguf":                      "hf.co/a/b@main:x-Q4_K_M.gguf",
		"https://huggingface.co/a/b/resolve/refs%2Fpr%2F7/q/x.GGUF#L3":            "hf.co/a/b@refs/pr/7:q/x.GGUF",
		"https://huggingface.co/a/b/raw/refs/pr/7/config.json":                    "hf.co/a/b@refs/pr/7",
		"https://huggingface.co/a/b/tree/refs%2Fpr%2F7?x=y#z":                     "hf.co/a/b@refs/pr/7",
		"https://huggingface.co/a/b/tree/feature/x":                               "hf.co/a/b@feature/x",
		"https://huggingface.co/a/b/tree/feature%2Fx/":                            "hf.co/a/b@feature/x",
		"https://huggingface.co/a/b/commit/" + commit:                             "hf.co/a/b@" + commit,
		"https://huggingface.co/a/b?library=mlx#usage":                            "hf.co/a/b",
		"http://www.huggingface.co/a/b.git":                                       "hf.co/a/b",
		"huggingface.co/a/b/blob/main/README.md":                                  "hf.co/a/b@main",
		"hf.co/gpt2/tree/main":                                                    "hf.co/gpt2@main",
		"hf.co/models/a/b":                                                        "hf.co/a/b",
		"hf.co/a/b@refs%2Fpr%2F7":                                                 "hf.co/a/b@refs/pr/7",
		"hf.co/a/b@x#1":                                                           "hf.co/a/b@x#1",
		"hf://a/b/q/x.gguf":                                                       "hf.co/a/b:q/x.gguf",
		"hf://a/b/model.safetensors":                                              "hf.co/a/b",
		"https://mirror.example/hf/a/b/tree/main":                                 "hf.co/a/b@main",
		"HTTPS://mirror.example/hf/a/b":                                           "hf.co/a/b",
		"https://www.modelscope.cn/models/a/b/summary":                            "modelscope.cn/a/b",
		"https://modelscope.cn/models/a/b/file/view/master/config.json?status=1":  "modelscope.cn/a/b@master",
		"https://modelscope.cn/models/a/b/resolve/v1/x.gguf":                      "modelscope.cn/a/b@v1:x.gguf",
		"https://modelscope.cn/models/a/b@v1":                                     "modelscope.cn/a/b@v1",
		// Refused, with the reason.
		"https://huggingface.co/datasets/a/b":             "!it names a dataset of the hub",
		"hf.co/datasets/squad":                            "!it names a dataset of the hub",
		"hf://spaces/a/b/app.py":                          "!it names a space of the hub",
		"https://huggingface.co/a/b/tree/main/onnx":       "!it names a folder of a repository",
		"https://huggingface.co/a/b/blob/main/x/y.json":   "!it names a file in a folder",
		"https://huggingface.co/a/b/discussions/7":        "!a pull request is hf.co/ORG/REPO@refs/pr/NUMBER",
		"https://huggingface.co/a/b/blob/main":            "!it names a file in a folder",
		"https://huggingface.co/a/b/tree/x%20y":           "!not a branch, tag or commit",
		"https://huggingface.co/a/b/blob/%2E%2E/x.gguf":   "!not a branch, tag or commit",
		"https://huggingface.co/a/b/blob/main/../x.gguf":  "!not a file or a type",
		"https://huggingface.co/a/b/blob/main/%0Ax.gguf":  "!not a file or a type",
		"https://huggingface.co/a/b/resolve/main//x.gguf": "!not a file or a type",
	} {
		n, err := ParseName(text)
		reason, refused := strings.CutPrefix(want, "!")
		if refused != (err != nil) || !refused && n.String() != want || refused && !strings.Contains(err.Error(), reason) {
			t.Errorf("%s: %s, %v; want %s", text, n, err, want)
		}
		if again, errAgain := ParseName(n.String()); err == nil && (errAgain != nil || again != n) {
			t.Errorf("%s: %+v, then %+v, %v", text, n, again, errAgain)
		}
	}
	if IsName("https://other.example/a/b") || IsName("mirror.example/hf/a/b") || IsName("https://hf://a/b") {
		t.Error("IsName takes too much")
	}
}
