package remote

import (
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/ingotml/ingot/registry/credentials"
	rt "github.com/ingotml/ingot/registry/registrytest"
)

// TestGivenCredentials: credentials for one command go to their own registry and to the token server that it names. A
// mirror, the target of a redirect, and what the token server redirects to get none, whatever they ask for, and no
// error quotes them. The same holds for credentials that are refused.
func TestGivenCredentials(t *testing.T) {
	for _, password := range []string{"secret", "s3cret-wrong"} {
		for _, way := range []string{"mirror", "redirect", "token server", "redirect of the token server"} {
			rt.DockerHome(t, "")
			greedy := newAuthPeer(t, &authPeer{scheme: "Basic", user: "nobody"})
			p := newAuthPeer(t, &authPeer{scheme: "Bearer", user: "ann"})
			tokens := newAuthPeer(t, &authPeer{scheme: "Bearer", user: "ann"})
			opts := Options{}
			switch way {
			case "mirror":
				opts.Mirrors = []Mirror{{Host: p.host(), Mirror: greedy.host()}}
			case "redirect":
				p.handler = func(w http.ResponseWriter, req *http.Request) bool {
					moved := strings.Contains(req.URL.Path, "blobs") && req.Header.Get("Authorization") != ""
					if moved {
						http.Redirect(w, req, greedy.URL+req.URL.Path, http.StatusTemporaryRedirect)
					}
					return moved
				}
			case "token server":
				p.realm = tokens.URL + "/token"
			default:
				p.realm = tokens.URL + "/token"
				tokens.handler = func(w http.ResponseWriter, req *http.Request) bool {
					http.Redirect(w, req, greedy.URL+"/token", http.StatusTemporaryRedirect)
					return true
				}
			}
			var told []string
			opts.Warn = func(_ string, err error) { told = append(told, err.Error()) }
			keychain, err := credentials.Default.With([]byte("ann:"+password), "the file", []string{p.host()})
			if err != nil {
				t.Fatal(err)
			}
			opts.Keychain = keychain
			_, err = repositoryOf(t, authClient(t, opts), p.host()+"/a/model", Pull).askFor("GET", "blobs/x")
			if err != nil {
				told = append(told, err.Error())
			}
			if password != "secret" && (way == "mirror" || way == "redirect") && (!errors.Is(err, ErrUnauthorized) ||
				!strings.Contains(err.Error(), "rejected the credentials from the file")) {
				t.Errorf("%s, refused: %v", way, err)
			}
			for _, req := range greedy.requests {
				if a := req.Header.Get("Authorization"); a != "" {
					t.Errorf("%s: another host got %q", way, a)
				}
			}
			text := strings.Join(told, "\n")
			if strings.Contains(text, password) || strings.Contains(text, "YW5uOn") {
				t.Errorf("%s: %s", way, text)
			}
		}
	}
}
