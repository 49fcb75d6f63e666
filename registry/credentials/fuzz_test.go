//go:build unix

package credentials

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/ingotml/ingot/internal/limits/runtest"
)

// secret is what no message may quote.
const secret = "5ecr3tOfAnn"

// dockerConfig makes auth files of entries that are right, wrong or odd, with the secret in various places.
type dockerConfig struct{ *runtest.Choices }

func (d dockerConfig) key() string {
	return d.Pick("r.example", "r.example:5000", "R.EXAMPLE", "https://r.example/v2/", "http://r.example",
		"r.example/team",
		"r.example/team/", "r.example/team/model", "r.example/", "//r.example", "docker.io", "https://index.docker.io/v1/",
		"index.docker.io", "", "/", "r.example/te", "r.example.evil.example", "\u001b[31m", "r.example\n", string(d.Bytes()))
}

func (d dockerConfig) value() string {
	user := d.Pick("ann", "", "<token>", "a:b", "\n")
	encoded := base64.StdEncoding.EncodeToString([]byte(user + ":" + secret))
	return d.Pick(`{"auth":"`+encoded+`"}`, `{}`, `null`, `{"auth":"`+encoded+`","identitytoken":"`+secret+`"}`,
		`{"auth":"`+secret+`"}`, `{"username":"ann","password":"`+secret+`"}`, `{"username":`+quoted(user)+`,"password":""}`,
		`{"registrytoken":"`+secret+`"}`, `"`+secret+`"`, `["`+secret+`"]`, `{"auth":["`+secret+`"]}`, `{"auth":{"`+secret+
			`":1}}`,
		`{"password":"`+secret+`","username":7}`, `{"auth":"`+encoded[:len(encoded)-3]+`"}`, `true`)
}

func quoted(text string) string {
	b, err := json.Marshal(text)
	if err != nil {
		panic(err)
	}
	return string(b)
}

func (d dockerConfig) object(value func() string) string {
	return "{" + d.Joined(4, ",", func() string { return quoted(d.key()) + ":" + value() }) + "}"
}

func (d dockerConfig) file() string {
	switch d.N(12) {
	case 0:
		return string(d.Bytes())
	case 1:
		return `{"auths":` + d.value() + `}`
	case 2:
		return d.object(d.value) // as old programs wrote it
	}
	text := d.Pick("", "\ufeff", " ") + `{` + d.Pick(`"auths"`, `"Auths"`, `"auths":null,"auths"`) + `:` +
		d.object(d.value)
	if d.Yes(4) {
		text += `,"credHelpers":` + d.object(func() string { return d.Pick(`""`, `7`, `null`) })
	}
	text += d.Pick("", `,"HttpHeaders":{"a":"<b>"}`, `,"credsStore":""`, `,"credsStore":[]`, `,"detachKeys":"x"`)
	return text + d.Pick("}", "", "}}", ",}")
}

func checkMessage(t *testing.T, problem error) {
	t.Helper()
	text := problem.Error()
	if strings.Contains(text, secret) || strings.ContainsAny(text, "\x1b\r") || len(text) > 2000 {
		t.Errorf("the message quotes a secret or a control character: %q", text)
	}
}

// mayHave reports whether a key of an auth file speaks for a repository: it is a host's, in any spelling, or a path's.
func mayHave(key, repository string) bool {
	_, rest, isURL := strings.Cut(key, "://")
	if !isURL {
		rest = key
	}
	host, path, _ := strings.Cut(strings.ToLower(rest), "/")
	if host != "r.example" {
		return false
	}
	path = strings.Trim(path, "/")
	return isURL || path == "" || path == "v1" || path == "v2" ||
		strings.HasPrefix(repository+"/", "r.example/"+path+"/")
}

// FuzzFiles: whatever an auth file holds, credentials are those of a key that speaks for the repository, and no message
// quotes them.
func FuzzFiles(f *testing.F) {
	for i := range 24 {
		f.Add([]byte{byte(i), 1, 2, byte(i * 7), byte(i * 3), 4, byte(i), 9, 11, byte(i * 5), 30, 3, 2, 1}, i%5 == 0)
	}
	f.Fuzz(func(t *testing.T, choices []byte, legacy bool) {
		content := dockerConfig{runtest.NewChoices(choices)}.file()
		const repository = "r.example/team/model"
		s := source{place: "config.json", content: []byte(content), legacy: legacy}
		found, problems := s.find(t.Context(), keysOf(repository))
		for _, problem := range problems {
			checkMessage(t, problem)
		}
		if _, err := (&Keychain{}).With([]byte(content), "FILE", []string{repository}); err != nil {
			checkMessage(t, err)
		}
		if found == nil {
			return
		}
		if found.AuthConfig == (authn.AuthConfig{}) {
			t.Errorf("found empty credentials in %s", content)
		}
		parsed, _ := parseAuthFile([]byte(content), legacy)
		for key := range parsed.Auths {
			if mayHave(key, repository) {
				return
			}
		}
		t.Errorf("found %+v for %s in %s", found, repository, content)
	})
}

// FuzzHelper: whatever a credential helper prints, it is credentials, none, or an error that does not quote it.
func FuzzHelper(f *testing.F) {
	for _, says := range []string{
		`{"ServerURL":"x","Username":"ann","Secret":"` + secret + `"}`, `{"Username":"<token>","Secret":"` + secret + `"}`,
		`{"Username":"ann"}`, `{"Secret":["` + secret + `"]}`, `credentials not found in native keychain`, ``, `[]`, `null`,
		`{"Username":"ann","Secret":"` + secret, "error: " + strings.Repeat("x", 1000), "\x1b[31mred\r\n",
	} {
		f.Add([]byte(says), byte(0))
		f.Add([]byte(says), byte(1))
	}
	dir := f.TempDir()
	output, status := filepath.Join(dir, "output"), filepath.Join(dir, "status")
	script := fmt.Sprintf("#!/bin/sh\n/bin/cat >/dev/null\n/bin/cat '%s'\nread code <'%s'\nexit $code\n", output, status)
	if err := os.WriteFile(filepath.Join(dir, helperPrefix+"fuzz"), []byte(script), 0o755); err != nil {
		f.Fatal(err)
	}
	f.Setenv("PATH", dir)
	f.Fuzz(func(t *testing.T, says []byte, code byte) {
		for file, content := range map[string][]byte{output: says, status: fmt.Appendln(nil, code%3)} {
			if err := os.WriteFile(file, content, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		cfg, err := askHelper(t.Context(), "fuzz", "r.example")
		if err != nil {
			text := err.Error()
			if strings.ContainsAny(text, "\x1b\r\n") || utf8.RuneCountInString(text) > 300 {
				t.Errorf("message %q", text)
			}
			if json.Valid(says) && strings.Contains(text, secret) {
				t.Errorf("the message quotes the secret: %q", text)
			}
			if cfg != (authn.AuthConfig{}) {
				t.Errorf("%+v beside %v", cfg, err)
			}
			return
		}
		if cfg != (authn.AuthConfig{}) && cfg.IdentityToken == "" && (cfg.Username == "" || cfg.Password == "") {
			t.Errorf("half of credentials: %+v", cfg)
		}
	})
}

// FuzzStore: storing credentials in a file keeps all else in it, or changes nothing.
func FuzzStore(f *testing.F) {
	for i := range 24 {
		f.Add([]byte{byte(i), 1, byte(i * 3), 2, byte(i * 7), 5, 1, 0, byte(i), 12, 3})
	}
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, choices []byte) {
		path := filepath.Join(dir, "config.json")
		before := []byte(dockerConfig{runtest.NewChoices(choices)}.file())
		if err := os.WriteFile(path, before, 0o600); err != nil {
			t.Fatal(err)
		}
		err := editConfig(path, func(_, auths map[string]json.RawMessage) error {
			auths["new.example"] = json.RawMessage(`{"auth":"YW5uOnB3"}`)
			return nil
		})
		after, readErr := os.ReadFile(path)
		if readErr != nil {
			t.Fatal(readErr)
		}
		if err != nil {
			checkMessage(t, err)
			if string(after) != string(before) {
				t.Errorf("%v, and the file changed from %q to %q", err, before, after)
			}
			return
		}
		found, problems := source{place: "x", path: path}.find(t.Context(), []string{"new.example"})
		if found == nil || found.Username != "ann" {
			t.Errorf("not found again: %v in %s", problems, after)
		}
		checkKept(t, before, after)
	})
}

func checkKept(t *testing.T, before, after []byte) {
	t.Helper()
	old, kept := map[string]any{}, map[string]any{}
	text := strings.TrimSpace(strings.TrimPrefix(string(before), "\ufeff"))
	if text != "" {
		if err := json.Unmarshal([]byte(text), &old); err != nil {
			t.Fatal(err)
		}
	}
	if err := json.Unmarshal(after, &kept); err != nil {
		t.Fatalf("%v: %s", err, after)
	}
	if auths, ok := kept["auths"].(map[string]any); ok {
		delete(auths, "new.example")
		if len(auths) == 0 && (old["auths"] == nil) {
			delete(kept, "auths")
			delete(old, "auths")
		}
	}
	a, errA := json.Marshal(old)
	b, errB := json.Marshal(kept)
	if errA != nil || errB != nil || string(a) != string(b) {
		t.Errorf("the file had %s, and has %s", a, b)
	}
}
