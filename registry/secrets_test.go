package registry

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ingotml/ingot/manifest"
)

// TestSignedURLs: whatever fails at a URL that a registry has signed, no error and no event contains the signature or a
// password in the URL.
func TestSignedURLs(t *testing.T) {
	const secret = "s3cret/+sig&nature"
	query := "?X-Amz-Signature=" + url.QueryEscape(secret) + "&X-Amz-Credential=AKIAs3cret"
	path := "/bucket/blob" + query
	plain := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		self := "http://" + r.Host + r.URL.String()
		switch {
		case strings.HasPrefix(r.URL.Path, "/loop"):
			http.Redirect(w, r, "/loop"+query, http.StatusFound)
		case strings.HasPrefix(r.URL.Path, "/hang"):
			select {
			case <-r.Context().Done():
			case <-time.After(2 * time.Second):
			}
			panic(http.ErrAbortHandler)
		case strings.HasPrefix(r.URL.Path, "/short"):
			w.Header().Set("Content-Length", "1000")
			io.WriteString(w, self)
			panic(http.ErrAbortHandler)
		case strings.HasPrefix(r.URL.Path, "/json"):
			w.WriteHeader(http.StatusForbidden)
			fmt.Fprintf(w, `{"errors":[{"code":"DENIED","message":"no %s, %s: %s"}]}`, self, r.URL.RawQuery,
				r.URL.Query().Get("X-Amz-Signature"))
		default:
			w.Header().Set("Warning", `299 - "`+self+`"`)
			w.Header().Set("Content-Type", "text/plain")
			w.WriteHeader(http.StatusForbidden)
			fmt.Fprintf(w, "%s has expired; signed were %s and\n %s", self, r.URL.RequestURI(),
				r.URL.Query().Get("X-Amz-Signature"))
		}
	}))
	t.Cleanup(plain.Close)
	secure := httptest.NewUnstartedServer(nil)
	secure.Config.ErrorLog = quiet()
	secure.StartTLS()
	t.Cleanup(secure.Close)
	echo := listen(t, func(conn net.Conn) { // responds with the request line instead of a status line
		line, _ := bufio.NewReader(conn).ReadString('\n')
		io.WriteString(conn, line)
	})
	header := listen(t, func(conn net.Conn) { // puts it into a malformed header
		line, _ := bufio.NewReader(conn).ReadString('\n')
		if fields := strings.Fields(line); len(fields) > 1 {
			io.WriteString(conn, "HTTP/1.1 200 OK\r\nno header "+fields[1]+"\r\n\r\n")
		}
	})
	closed := listen(t, func(conn net.Conn) {})
	plainTLS := strings.Replace(plain.URL, "http://", "https://", 1)
	store := newStore(t)
	small, _ := putModel(t, store, "small", 1000)

	addresses := map[string]string{
		"refused connection":      "http://127.0.0.1:1" + path,
		"closed connection":       "http://" + closed + path,
		"unknown host":            "http://nowhere.invalid" + path,
		"certificate":             secure.URL + path,
		"TLS where there is none": plainTLS + path,
		"403 in words":            plain.URL + path,
		"403 in JSON":             plain.URL + "/json" + query,
		"loop":                    plain.URL + "/loop" + query,
		"short body":              plain.URL + "/short" + query,
		"no answer":               plain.URL + "/hang" + query,
		"no HTTP":                 "http://" + echo + path,
		"no header":               "http://" + header + path,
		"a password":              "http://ann:s3cret@127.0.0.1:1/",
		"a password, no host":     "http://ann:s3cret@" + query,
		"no address":              "http://[::1" + path,
		"no port":                 "http://host:s3cret" + path,
		"bad escape":              "http://host/%zz" + query,
		"control characters":      "http://host/a\tb" + query,
		"not HTTP":                "s3://bucket/blob" + query,
		"private":                 "http://169.254.169.254/blob" + query,
	}
	ways := map[string]func(c *Client, p *peer, to string) error{
		"redirect of a blob": func(c *Client, p *peer, to string) error {
			p.on("GET", blobRoute, respond(307, "Location", to))
			_, err := c.Pull(t.Context(), newStore(t), p.name("team/model"), PullOptions{})
			return err
		},
		"upload": func(c *Client, p *peer, to string) error {
			p.on("POST", beginRoute, respond(202, "Location", to))
			_, err := c.Push(t.Context(), store, small, p.name("team/new"),
				PushOptions{NoReferrers: true, Stall: 50 * time.Millisecond})
			return err
		},
		"redirect of an upload": func(c *Client, p *peer, to string) error {
			p.on("PUT", uploadRoute, respond(307, "Location", to))
			_, err := c.Push(t.Context(), store, small, p.name("team/new"),
				PushOptions{NoReferrers: true, Stall: 50 * time.Millisecond})
			return err
		},
		"redirect of a chunk": func(c *Client, p *peer, to string) error {
			p.on("PATCH", uploadRoute, respond(307, "Location", to))
			_, err := c.Push(t.Context(), store, small, p.name("team/new"),
				PushOptions{ChunkSize: 500, NoReferrers: true, Stall: 50 * time.Millisecond})
			return err
		},
		"upload of a small blob": func(c *Client, p *peer, to string) error {
			p.on("POST", beginRoute, respond(202, "Location", to))
			return repositoryOf(t, c.conn, p.host()+"/team/model", push).putBytes(t.Context(), []byte("x"))
		},
		"token server": func(c *Client, p *peer, to string) error {
			p.on("GET", pingRoute, respond(401, "WWW-Authenticate", `Bearer realm="`+to+`",service="x"`))
			_, err := c.Resolve(t.Context(), p.name("team/model"))
			return err
		},
	}
	for way, run := range ways {
		for what, to := range addresses {
			t.Run(way+"/"+what, func(t *testing.T) {
				t.Parallel()
				p := newPeer(t)
				p.serve(store, small, "team/model", "latest")
				var mu sync.Mutex
				var told strings.Builder
				c := newClient(t, func(o *Options) {
					o.Connection.Attempts = 2
					o.Events = func(e Event) {
						mu.Lock()
						defer mu.Unlock()
						fmt.Fprintln(&told, e.Kind, e.Name, e.Err)
					}
				})
				c.tune.headerTimeout = 50 * time.Millisecond
				if strings.Contains(what, "no answer") {
					c.conn.net.base.ResponseHeaderTimeout = 50 * time.Millisecond
				}
				err := run(c, p, to)
				if err == nil {
					t.Fatal("no error")
				}
				mu.Lock()
				defer mu.Unlock()
				text := err.Error() + "\n" + told.String()
				for _, part := range []string{"s3cret", url.QueryEscape("s3cret/"), "nature", "Signature="} {
					if strings.Contains(text, part) {
						t.Errorf("%q leaked:\n%s", part, text)
						break
					}
				}
			})
		}
	}
}

// TestProxyPassword: errors do not contain a proxy's password.
func TestProxyPassword(t *testing.T) {
	c := newClient(t, func(o *Options) { o.Connection.PlainHTTP, o.Connection.Attempts = true, 1 })
	n, err := manifest.ParseName("registry.example.com/team/model")
	if err != nil {
		t.Fatal(err)
	}
	for what, proxy := range map[string]func(*http.Request) (*url.URL, error){
		"refused": http.ProxyURL(&url.URL{Scheme: "http", User: url.UserPassword("ann", "s3cret"), Host: "127.0.0.1:1"}),
		"invalid": func(*http.Request) (*url.URL, error) {
			return nil, errors.New(`invalid proxy address "http://ann:s3cret@bad host"`)
		},
	} {
		c.conn.net.base.Proxy = proxy
		clear(c.conn.net.transports)
		_, err := c.Resolve(t.Context(), n)
		if err == nil {
			t.Fatalf("%s: no error", what)
		}
		checkNoSecrets(t, err, "s3cret")
	}
}

func TestRedactURLs(t *testing.T) {
	for text, want := range map[string]string{
		"no address? none":                                 "no address? none",
		"GET https://ann:pw@host/a?b=c failed":             "GET https://host/a failed",
		`Get "https://host:443/a/b?c#d": EOF`:              `Get "https://host:443/a/b": EOF`,
		"two: http://a/?x=1 and http://b?y=2, or http://c": "two: http://a/ and http://b or http://c",
		"http://a@b@c/@d?e":                                "http://c/@d",
	} {
		if got := redactURLs(text); got != want {
			t.Errorf("%q is %q, want %q", text, got, want)
		}
	}
	if got := clip("a\nhttp://u:p@host/x?y=z\x1b[0m"); got != "a http://host/x" {
		t.Errorf("%q", got)
	}
}
