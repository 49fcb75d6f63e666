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
	rt "github.com/ingotml/ingot/registry/registrytest"
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
	secure.Config.ErrorLog = rt.Quiet()
	secure.StartTLS()
	t.Cleanup(secure.Close)
	echo := rt.Listen(t, func(conn net.Conn) { // responds with the request line instead of a status line
		line, _ := bufio.NewReader(conn).ReadString('\n')
		io.WriteString(conn, line)
	})
	header := rt.Listen(t, func(conn net.Conn) { // puts it into a malformed header
		line, _ := bufio.NewReader(conn).ReadString('\n')
		if fields := strings.Fields(line); len(fields) > 1 {
			io.WriteString(conn, "HTTP/1.1 200 OK\r\nno header "+fields[1]+"\r\n\r\n")
		}
	})
	closed := rt.Listen(t, func(conn net.Conn) {})
	plainTLS := strings.Replace(plain.URL, "http://", "https://", 1)
	store := rt.NewStore(t)
	small, _ := rt.PutModel(t, store, "small", 1000)

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
	ways := map[string]func(c *Client, p *rt.Peer, to string) error{
		"redirect of a blob": func(c *Client, p *rt.Peer, to string) error {
			p.On("GET", rt.BlobRoute, rt.Respond(307, "Location", to))
			_, err := c.Pull(t.Context(), rt.NewStore(t), p.Name("team/model"), PullOptions{})
			return err
		},
		"upload": func(c *Client, p *rt.Peer, to string) error {
			p.On("POST", rt.BeginRoute, rt.Respond(202, "Location", to))
			_, err := c.Push(t.Context(), store, small, p.Name("team/new"),
				PushOptions{NoReferrers: true, Stall: 50 * time.Millisecond})
			return err
		},
		"redirect of an upload": func(c *Client, p *rt.Peer, to string) error {
			p.On("PUT", rt.UploadRoute, rt.Respond(307, "Location", to))
			_, err := c.Push(t.Context(), store, small, p.Name("team/new"),
				PushOptions{NoReferrers: true, Stall: 50 * time.Millisecond})
			return err
		},
		"redirect of a chunk": func(c *Client, p *rt.Peer, to string) error {
			p.On("PATCH", rt.UploadRoute, rt.Respond(307, "Location", to))
			p.On("PUT", rt.UploadRoute, rt.Respond(405)) // the other way
			_, err := c.Push(t.Context(), store, small, p.Name("team/new"),
				PushOptions{ChunkSize: 500, NoReferrers: true, Stall: 50 * time.Millisecond})
			return err
		},
		"upload of a small blob": func(c *Client, p *rt.Peer, to string) error {
			p.On("POST", rt.BeginRoute, rt.Respond(202, "Location", to))
			return putSmall(t, c, p.Name("team/model"))
		},
		"token server": func(c *Client, p *rt.Peer, to string) error {
			p.On("GET", rt.PingRoute, rt.Respond(401, "WWW-Authenticate", `Bearer realm="`+to+`",service="x"`))
			_, err := c.Resolve(t.Context(), p.Name("team/model"))
			return err
		},
	}
	for way, run := range ways {
		for what, to := range addresses {
			t.Run(way+"/"+what, func(t *testing.T) {
				t.Parallel()
				p := rt.New(t)
				p.Serve(store, small, "team/model", "latest")
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
				c.tune.Response = 50 * time.Millisecond
				if strings.Contains(what, "no answer") {
					c.conn.Net.Base.ResponseHeaderTimeout = 50 * time.Millisecond
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
		c := newClient(t, func(o *Options) { o.Connection.PlainHTTP, o.Connection.Attempts = true, 1 })
		c.conn.Net.Base.Proxy = proxy
		_, err := c.Resolve(t.Context(), n)
		if err == nil {
			t.Fatalf("%s: no error", what)
		}
		rt.CheckNoSecrets(t, err, "s3cret")
	}
}
