package arch

import (
	"testing"
)

func TestSetKeys(t *testing.T) {
	set := map[string][]byte{"model_type": []byte(`"b"`), "architectures": []byte(`["B"]`)}
	for in, want := range map[string]string{
		"{ \"x\": 1,\n  \"model_type\" : \"a\" , \"architectures\":\n[\"A\",\n\"C\"]}\n": "{ \"x\": 1,\n  \"model_type\" : " +
			"\"b\" , \"architectures\":\n[\"B\"]}\n",
		`{"x": {"model_type": "a"}}`:               `{"architectures": ["B"], "model_type": "b", "x": {"model_type": "a"}}`,
		`{"model_type": "a", "model_type": "c"}`:   `{"architectures": ["B"], "model_type": "b", "model_type": "b"}`,
		`{"mod\u0065l_type":0, "architectures":0}`: `{"mod\u0065l_type":"b", "architectures":["B"]}`,
		"{}": `{"architectures": ["B"], "model_type": "b"}`,
		"[]": "[]",
		"{":  "{",
	} {
		if got := string(setKeys([]byte(in), set)); got != want {
			t.Errorf("%q becomes %q, want %q", in, got, want)
		}
	}
}
