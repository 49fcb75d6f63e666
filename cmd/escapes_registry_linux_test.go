package cmd_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ingotml/ingot/cmd"
	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

// inHeader and inStatus are the evil texts that net/http accepts in a header and in a status line.
const (
	inHeader = "\u009b31m\u202e\U000e0041\x9b2J"
	inStatus = "\x1b[2J\x1b]0;title\x07\b\x7f" + inHeader
)

// responds starts a registry that writes responses byte for byte.
func responds(t *testing.T, respond func(r *http.Request, addr string) string) (addr string) {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c, buffered, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer c.Close()
		_, _ = buffered.WriteString(respond(r, r.Host)) // the client may be gone
		_ = buffered.Flush()
	}))
	t.Cleanup(s.Close)
	return strings.TrimPrefix(s.URL, "http://")
}

// reply formats a response with a status, headers and a body.
func reply(status, body string, headers ...string) string {
	head := strings.Join(append(headers, ""), "\r\n")
	return fmt.Sprintf("HTTP/1.1 %s\r\n%sContent-Length: %d\r\nConnection: close\r\n\r\n%s", status, head, len(body), body)
}

// evilResponses returns evil responses of registries.
func evilResponses(t *testing.T) map[string]func(r *http.Request, addr string) string {
	t.Helper()
	text, err := json.Marshal(evil)
	if err != nil {
		t.Fatal(err)
	}
	const ok, jsonType = "200 OK", "Content-Type: application/json"
	ping := func(rest func(r *http.Request, addr string) string) func(*http.Request, string) string {
		return func(r *http.Request, addr string) string {
			if r.URL.Path == "/v2/" {
				return reply(ok, "{}", jsonType)
			}
			return rest(r, addr)
		}
	}
	always := func(a string) func(*http.Request, string) string {
		return func(*http.Request, string) string { return a }
	}
	manifests := func(mediaType, body string, headers ...string) func(*http.Request, string) string {
		return ping(func(r *http.Request, _ string) string {
			if strings.Contains(r.URL.Path, "/manifests/") && r.Method != http.MethodPut {
				return reply(ok, body, append(headers, "Content-Type: "+mediaType)...)
			}
			return reply("404 Not Found", evil)
		})
	}
	unauthorized := func(challenge string) func(*http.Request, string) string {
		return func(_ *http.Request, addr string) string {
			return reply("401 "+inStatus, evil, "WWW-Authenticate: "+strings.ReplaceAll(challenge, "ADDR", addr))
		}
	}
	token := func(response string) func(*http.Request, string) string {
		return func(r *http.Request, addr string) string {
			if r.URL.Path == "/token" {
				return response
			}
			return reply("401 Unauthorized", "", fmt.Sprintf(`WWW-Authenticate: Bearer realm="http://%s/token",service="%s"`,
				addr, inHeader))
		}
	}
	const index = ocispec.MediaTypeImageIndex
	sum := digest.FromString("x").String()
	doc := fmt.Sprintf(`{"schemaVersion":2,"mediaType":%q,"config":{"mediaType":"a/b","digest":%q,"size":1},"layers":[]}`,
		ocispec.MediaTypeImageManifest, sum)
	platforms := fmt.Sprintf(`{"schemaVersion":2,"mediaType":%q,"manifests":[{"mediaType":%[2]s,"digest":%[2]s,"size":1,
		"platform":{"os":%[2]s,"architecture":%[2]s}}]}`, index, text)
	referrers := fmt.Sprintf(`{"schemaVersion":2,"mediaType":%q,"manifests":[{"mediaType":%q,"digest":%q,"size":1,
		"artifactType":%[4]s,"annotations":{%[4]s:%[4]s,"org.opencontainers.image.title":%[4]s}}]}`,
		index, ocispec.MediaTypeImageManifest, digest.FromString(evil), text)
	list := map[string]func(*http.Request, string) string{
		"status": always(reply("400 "+inStatus, evil, "Content-Type: text/plain")),
		"errors": ping(always(reply("404 Not Found",
			`{"errors":[{"code":`+string(text)+`,"message":`+string(text)+`}]}`, jsonType))),
		"error of a token": ping(always(reply("403 Forbidden",
			`{"error":`+string(text)+`,"error_description":`+string(text)+`}`, jsonType))),
		"a long pause": ping(always(reply("503 "+inStatus, evil, "Content-Type: text/plain", "Retry-After: 99999"))),
		"bearer": unauthorized(`Bearer realm="http://ADDR/` + inHeader + `",service="` + inHeader + `",scope="` +
			inHeader + `"`),
		"no bearer":      unauthorized(`Bearer realm="` + inHeader + `://x"`),
		"basic":          unauthorized(`Basic realm="` + inHeader + `"`),
		"unknown scheme": unauthorized(inHeader + ` realm="` + inHeader + `"`),
		"token refused":  token(reply("400 "+inStatus, `{"details":`+string(text)+`}`, jsonType)),
		"token no JSON":  token(reply(ok, evil, jsonType)),
		"token":          token(reply(ok, `{"token":`+string(text)+`}`, jsonType)),
		"redirect": func(r *http.Request, addr string) string {
			if strings.HasPrefix(r.URL.Path, "/v2/") {
				return reply("307 "+inStatus, evil, "Location: http://"+addr+"/"+inHeader)
			}
			return reply("404 "+inStatus, evil, "Content-Type: text/plain")
		},
		"redirect to none": always(reply("307 Temporary Redirect", "", "Location: "+inHeader+"://%zz"+inHeader)),
		"media type":       manifests("text/"+inHeader, doc),
		"no JSON":          manifests(ocispec.MediaTypeImageManifest, evil),
		"digest":           manifests(ocispec.MediaTypeImageManifest, doc, "Docker-Content-Digest: sha256:"+inHeader),
		"blob": manifests(ocispec.MediaTypeImageManifest,
			strings.ReplaceAll(doc, sum, `sha256:`+strings.Trim(string(text), `"`))),
		"warnings":  manifests(ocispec.MediaTypeImageManifest, doc, `Warning: 299 - "`+inHeader+`"`),
		"platforms": manifests(index, platforms),
		"referrers": ping(func(r *http.Request, _ string) string {
			if strings.Contains(r.URL.Path, "/referrers/") {
				return reply(ok, referrers, "Content-Type: "+index)
			}
			return reply(ok, doc, "Content-Type: "+ocispec.MediaTypeImageManifest)
		}),
		"upload": ping(func(r *http.Request, addr string) string {
			if r.Method == http.MethodPost || r.Method == http.MethodPatch {
				return reply("202 "+inStatus, "", "Location: http://"+addr+"/"+inHeader, "Range: "+inHeader,
					"OCI-Chunk-Min-Length: "+inHeader)
			}
			return reply("404 "+inStatus, evil, "Content-Type: text/plain")
		}),
		"no upload": ping(func(r *http.Request, _ string) string {
			if r.Method == http.MethodPost {
				return reply("202 Accepted", "", "Location: %zz"+inHeader)
			}
			return reply("404 Not Found", "")
		}),
	}
	return list
}

// TestEvilRegistry checks that, whatever a registry responds, each command ends with one line of error, and that the
// terminal interprets nothing of the response.
func TestEvilRegistry(t *testing.T) {
	t.Setenv("INGOT_HOME", filepath.Join(t.TempDir(), "store"))
	t.Setenv("DOCKER_CONFIG", t.TempDir())
	pair := filepath.Join(t.TempDir(), "ours")
	if err := writeKeys("ed25519", pair); err != nil {
		t.Fatal(err)
	}
	key, public := pair+".key", pair+".pub"
	if shown, code := onTerminal(t, "create", "a", filepath.Join("..", "testdata", "models", "llama-default")); code != 0 {
		t.Fatal(shown)
	}
	for what, respond := range evilResponses(t) {
		name := responds(t, respond) + "/team/model:v1"
		host, _, _ := strings.Cut(name, "/")
		if shown, code := onTerminal(t, "tag", "a", name); code != 0 {
			t.Fatal(shown)
		}
		for _, args := range [][]string{
			{"pull", name}, {"pull", name, "--json"}, {"pull", name, "--require-signature", "--key", public},
			{"push", name}, {"push", name, "--json"}, {"sign", name, "--key", key, "--push"},
			{"discover", name, "--remote"}, {"discover", name, "--remote", "--json"}, {"verify", name, "--key", public},
			{"login", host, "-u", "me", "--password-stdin"},
		} {
			var out, errs bytes.Buffer
			code := cmd.Main(args, strings.NewReader("secret\n"), &out, &errs)
			if bad := firstControl(errs.String()); bad != "" {
				t.Errorf("%s: ingot %q lets %q through in %q", what, args, bad, errs.String())
			}
			lines := strings.Split(strings.TrimSuffix(errs.String(), "\n"), "\n")
			for i, line := range lines {
				if strings.HasPrefix(line, "name  forged") || code != 0 &&
					strings.HasPrefix(line, "ingot: ") != (i == len(lines)-1) {
					t.Errorf("%s: ingot %q prints %q", what, args, errs.String())
				}
			}
			if code != 0 && out.Len() > 0 {
				t.Errorf("%s: ingot %q fails and prints %q", what, args, &out)
			}
			if args[len(args)-1] == "--json" && firstControl(out.String()) != "" {
				t.Errorf("%s: ingot %q has %q in its JSON", what, args, firstControl(out.String()))
			}
		}
		if shown, code := onTerminal(t, "discover", name, "--remote"); what == "referrers" &&
			(code != 0 || !strings.Contains(shown, `\u001b[2J`)) {
			t.Errorf("%s: %d, %q", what, code, shown)
		}
		if shown, code := onTerminal(t, "pull", name); what == "errors" &&
			(code != 1 || !strings.Contains(shown, "404 Not Found")) {
			t.Errorf("%s: %d, %q", what, code, shown)
		}
		onTerminal(t, "rm", name)
	}
}
