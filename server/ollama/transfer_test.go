package ollama

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ingotml/ingot/registry/address"
	"github.com/ingotml/ingot/server"
	"github.com/ingotml/ingot/server/servertest"
)

func TestPushPull(t *testing.T) {
	t.Setenv("DOCKER_CONFIG", t.TempDir())
	host := servertest.NewRegistry(t, nil)
	f := serve(t, nil)
	name := host + "/team/talk:v1"
	f.Has(t, "POST", "/api/copy", fmt.Sprintf(`{"source":"talk","destination":%q}`, name), 200)
	body := fmt.Sprintf(`{"model":%q}`, name)
	for _, path := range []string{"/api/push", "/api/pull"} {
		status, text := f.Ask(t, "POST", path, body)
		list := servertest.Lines(t, text)
		if status != 200 || list[len(list)-1]["status"] != "success" ||
			!strings.Contains(fmt.Sprint(list[0]["status"]), "manifest") {
			t.Fatalf("%s: %d: %s", path, status, text)
		}
		for _, l := range list[1 : len(list)-1] {
			if d, _ := l["digest"].(string); !strings.HasPrefix(d, "sha256:") ||
				!strings.Contains(l["status"].(string), d[7:19]) {
				t.Errorf("%s: %v", path, l)
			}
		}
		if path == "/api/push" {
			f = serve(t, nil) // has no such model
			f.Has(t, "POST", "/api/push", body, 404, `{"error":"model '`+name+`' not found`)
		}
	}
	f.Has(t, "POST", "/api/show", body, 200, `"system":"brief"`)
	f.Has(t, "POST", "/api/pull", fmt.Sprintf(`{"name":%q,"stream":false,"username":"u","password":"p"}`, name), 200,
		`{"status":"success"}`)

	f.Has(t, "POST", "/api/pull", `{"model":"Talk"}`, 200, `{"status":"pulling manifest"}`, `{"status":"success"}`)
	f.Has(t, "POST", "/api/pull", `{"model":"none"}`, 400, "none:latest has no registry")
	f.Has(t, "POST", "/api/pull", `{}`, 400, `{"error":"model is required"}`)
	f.Has(t, "POST", "/api/push", `{"model":"talk"}`, 400, "has no registry")
	f.Has(t, "POST", "/api/pull", `{"model":"../x"}`, 400, "model name")
	f.Has(t, "POST", "/api/pull", fmt.Sprintf(`{"model":"%s/team/none"}`, host), 404, `{"error":"`)
	denied := servertest.NewRegistry(t, func(w http.ResponseWriter, r *http.Request) bool {
		w.Header().Set("WWW-Authenticate", `Basic realm="x"`)
		w.WriteHeader(http.StatusUnauthorized)
		return true
	})
	f.Has(t, "POST", "/api/pull", fmt.Sprintf(`{"model":"%s/team/none","stream":false}`, denied), 403, "credentials",
		"ingot login")
	broken := servertest.NewRegistry(t, func(w http.ResponseWriter, r *http.Request) bool {
		if r.URL.Path == "/v2/" {
			return false
		}
		w.WriteHeader(http.StatusNotImplemented)
		return true
	})
	f.Has(t, "POST", "/api/pull", fmt.Sprintf(`{"model":"%s/team/none"}`, broken), 502, "501")
}

// If a client disconnects, its pull is cancelled. The next pull resumes.
func TestPullDisconnect(t *testing.T) {
	t.Setenv("DOCKER_CONFIG", t.TempDir())
	reached := make(chan struct{}, 100)
	hold := make(chan struct{})
	host := servertest.NewRegistry(t, func(_ http.ResponseWriter, r *http.Request) bool {
		if r.Method == http.MethodGet && strings.Contains(r.URL.Path, "/blobs/") {
			reached <- struct{}{}
			select {
			case <-hold:
			case <-r.Context().Done():
				return true
			}
		}
		return false
	})
	f := serve(t, nil)
	name := host + "/plain"
	f.Has(t, "POST", "/api/copy", fmt.Sprintf(`{"source":"plain","destination":%q}`, name), 200)
	body := fmt.Sprintf(`{"model":%q}`, name)
	f.Has(t, "POST", "/api/push", body, 200, "success")
	f.Has(t, "DELETE", "/api/delete", body, 200)
	f.Has(t, "DELETE", "/api/delete", `{"model":"plain"}`, 200)
	f.Has(t, "DELETE", "/api/delete", `{"model":"talk"}`, 200)

	ctx, cancel := context.WithCancel(t.Context())
	r, err := http.NewRequestWithContext(ctx, "POST", f.URL+"/api/pull", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	<-reached
	cancel()
	for deadline := time.Now().Add(10 * time.Second); len(f.left(t,
		"../holders/*")) > 0; time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("the pull is still running")
		}
	}
	f.Has(t, "POST", "/api/show", body, 404)
	close(hold)
	f.Has(t, "POST", "/api/pull", body, 200, "success")
	f.Has(t, "POST", "/api/show", body, 200)
	f.Has(t, "DELETE", "/api/delete", body, 200)
}

// TestRegistriesOfRequests: a request cannot skip certificate checks or reach a private network on its own.
func TestRegistriesOfRequests(t *testing.T) {
	t.Setenv("DOCKER_CONFIG", t.TempDir())
	t.Setenv("HTTP_PROXY", "")
	var requests atomic.Int32
	host := servertest.NewRegistry(t, func(http.ResponseWriter, *http.Request) bool { requests.Add(1); return false })
	port := host[strings.LastIndexByte(host, ':'):]
	for _, path := range []string{"/api/pull", "/api/push"} {
		f := serve(t, nil)
		name := host + "/talk"
		f.Has(t, "POST", "/api/copy", fmt.Sprintf(`{"source":"talk","destination":%q}`, name), 200)
		insecure := fmt.Sprintf(`{"model":%q,"insecure":true}`, name)
		f.Has(t, "POST", path, insecure, 403, "--insecure-registry "+host)
		for _, metadata := range []string{"169.254.169.254", "169.254.169.254:80", "[fe80::1]:5000", "10.11.12.13",
			"0.0.0.0" + port} {
			other := metadata + "/latest/meta-data"
			f.Has(t, "POST", "/api/copy", fmt.Sprintf(`{"source":"talk","destination":%q}`, other), 200)
			f.Has(t, "POST", path, fmt.Sprintf(`{"model":%q}`, other), 403, "address", "--private-registry "+metadata)
			f.Has(t, "POST", path, fmt.Sprintf(`{"model":%q,"insecure":true}`, other), 403, "--insecure-registry "+metadata)
		}
		if n := requests.Load(); n > 0 {
			t.Errorf("%s: %d requests to a registry that is not allowed", path, n)
		}
		// These servers are reachable from other machines.
		for _, change := range []func(*server.Options){
			func(o *server.Options) { o.Host, o.APIKey = "0.0.0.0", "" },
			func(o *server.Options) { o.Hosts, _ = servertest.Access(t, "chat.example", "") },
		} {
			f := serve(t, change)
			f.Has(t, "POST", "/api/copy", fmt.Sprintf(`{"source":"talk","destination":%q}`, name), 200)
			f.Has(t, "POST", path, fmt.Sprintf(`{"model":%q}`, name), 403, "loopback address", "--private-registry "+host)
		}
		if n := requests.Load(); n > 0 {
			t.Errorf("%s: %d requests to a registry that is not allowed", path, n)
		}
		f = serve(t, func(o *server.Options) {
			o.Hosts, _ = servertest.Access(t, "chat.example", "")
			o.PrivateRegistries = address.Hosts{host}
		})
		f.Has(t, "POST", "/api/copy", fmt.Sprintf(`{"source":"talk","destination":%q}`, name), 200)
		f.Has(t, "POST", "/api/push", fmt.Sprintf(`{"model":%q}`, name), 200, "success")
		f.Has(t, "POST", path, insecure, 403, "--insecure-registry "+host)
		f = serve(t, func(o *server.Options) { o.InsecureRegistries = address.Hosts{"127.0.0.1"} })
		f.Has(t, "POST", "/api/copy", fmt.Sprintf(`{"source":"talk","destination":%q}`, name), 200)
		f.Has(t, "POST", "/api/push", insecure, 200, "success")
		f.Has(t, "POST", path, insecure, 200, "success")
		requests.Store(0)
	}
	leading := servertest.NewRegistry(t, func(w http.ResponseWriter, r *http.Request) bool {
		http.Redirect(w, r, "http://169.254.169.254/latest?key=s3cret-s3cret", http.StatusFound)
		return true
	})
	f := serve(t, nil)
	status, response := f.Ask(t, "POST", "/api/pull", fmt.Sprintf(`{"model":"%s/talk","stream":false}`, leading))
	if status != 502 || !strings.Contains(response, "it leads from a loopback to a link-local address") ||
		strings.Contains(response, "s3cret") {
		t.Errorf("%d: %s", status, response)
	}
}
