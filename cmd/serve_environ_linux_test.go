package cmd_test

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

// TestChildKnowsNoSecrets checks that a model's process gets no variable of the server's that it does not need.
func TestChildKnowsNoSecrets(t *testing.T) {
	s := startServer(t, []string{
		"TOKEN=s3cret", "DATABASE_URL=postgres://u:s3cret@h/d", "HTTPS_PROXY=http://u:s3cret@127.0.0.1:9",
		"PGPASSWORD=s3cret",
		`DOCKER_AUTH_CONFIG={"auths":{"r.example":{"auth":"s3cret"}}}`, "SOMETHING=s3cret", "HF_TOKEN=s3cret",
		"NVIDIA_API_KEY=s3cret", "OMP_NUM_THREADS=1", "WANTED=yes", "INGOT_CHILD_ENV=WANTED",
	})
	s.whole(t, "/api/generate", `{"model":"demo","prompt":"x","options":{"num_predict":1}}`)
	all := s.children(t)
	if len(all) != 1 {
		t.Fatalf("children: %v", all)
	}
	for _, pid := range all {
		b, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
		if err != nil {
			t.Fatal(err)
		}
		text := string(b)
		if strings.Contains(text, "s3cret") {
			t.Errorf("a model's process gets %q", text)
		}
		for _, want := range []string{"PATH=", "HOME=", "INGOT_HOME=", "OMP_NUM_THREADS=1", "WANTED=yes"} {
			if !strings.Contains("\x00"+text, "\x00"+want) {
				t.Errorf("a model's process lacks %s: %q", want, text)
			}
		}
	}
}
