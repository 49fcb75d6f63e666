package interop

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"slices"
	"strings"
	"testing"
)

const (
	dockerManifest = "application/vnd.docker.distribution.manifest.v2+json"
	ollamaTensor   = "application/vnd.ollama.image.tensor"
	ollamaJSON     = "application/vnd.ollama.image.json"
)

// ollamaClient makes the requests of Ollama's client (its x/transfer as of August 2026). It accepts only docker's
// manifest type, resolves a blob's location by a GET whose body it discards, follows redirects to another host without
// its token, and resumes with an open-ended Range.
type ollamaClient struct {
	t          *testing.T
	registry   string // http://HOST
	repository string // NAMESPACE/MODEL
}

type ollamaLayer struct {
	MediaType string `json:"mediaType"`
	Digest    string `json:"digest"`
	Size      int64  `json:"size"`
	Name      string `json:"name"`
}

type ollamaManifest struct {
	SchemaVersion int           `json:"schemaVersion"`
	MediaType     string        `json:"mediaType"`
	Config        ollamaLayer   `json:"config"`
	Layers        []ollamaLayer `json:"layers"`
}

// direct does not follow redirects.
var direct = &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}

func (c *ollamaClient) do(method, address string, body io.Reader, header ...string) (*http.Response, []byte) {
	c.t.Helper()
	req, err := http.NewRequestWithContext(c.t.Context(), method, address, body)
	if err != nil {
		c.t.Fatal(err)
	}
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	resp, err := direct.Do(req)
	if err != nil {
		c.t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		c.t.Fatal(err)
	}
	return resp, b
}

func (c *ollamaClient) url(elem ...string) string {
	return c.registry + "/v2/" + c.repository + "/" + strings.Join(elem, "/")
}

func (c *ollamaClient) expect(resp *http.Response, want int) {
	c.t.Helper()
	if resp.StatusCode != want {
		c.t.Fatalf("%s %s: status %d, want %d", resp.Request.Method, resp.Request.URL.Path, resp.StatusCode, want)
	}
}

// pull fetches a manifest and all its blobs.
func (c *ollamaClient) pull(tag string) (raw []byte, m ollamaManifest, blobs map[string][]byte) {
	c.t.Helper()
	resp, raw := c.do(http.MethodGet, c.url("manifests", tag), nil, "Accept", dockerManifest)
	c.expect(resp, http.StatusOK)
	if err := json.Unmarshal(raw, &m); err != nil {
		c.t.Fatalf("manifest: %v", err)
	}
	blobs = map[string][]byte{}
	for i, l := range append(m.Layers, m.Config) {
		b := c.blob(l, i%2 == 1)
		if got := fmt.Sprintf("sha256:%x", sha256.Sum256(b)); got != l.Digest || int64(len(b)) != l.Size {
			c.t.Fatalf("layer %s: got %s of %d bytes, want %s of %d", l.Name, got, len(b), l.Digest, l.Size)
		}
		blobs[l.Digest] = b
	}
	return raw, m, blobs
}

// blob fetches a blob. With resume, it fetches the second half separately.
func (c *ollamaClient) blob(l ollamaLayer, resume bool) []byte {
	c.t.Helper()
	at := c.resolve(c.url("blobs", l.Digest))
	var first []byte
	if resume && l.Size > 1 {
		resp, whole := c.do(http.MethodGet, at, nil)
		c.expect(resp, http.StatusOK)
		first = whole[:l.Size/2]
		resp, rest := c.do(http.MethodGet, at, nil, "Range", fmt.Sprintf("bytes=%d-", len(first)))
		c.expect(resp, http.StatusPartialContent)
		return append(slices.Clip(first), rest...)
	}
	resp, b := c.do(http.MethodGet, at, nil)
	c.expect(resp, http.StatusOK)
	return b
}

func (c *ollamaClient) resolve(at string) string {
	c.t.Helper()
	for range 10 {
		resp, _ := c.do(http.MethodGet, at, nil)
		switch resp.StatusCode {
		case http.StatusOK:
			return at
		case http.StatusTemporaryRedirect, http.StatusFound, http.StatusMovedPermanently:
			to, err := resp.Location()
			if err != nil {
				c.t.Fatal(err)
			}
			from := resp.Request.URL.Host
			at = to.String()
			if to.Host != from {
				return at
			}
		default:
			c.expect(resp, http.StatusOK)
		}
	}
	c.t.Fatal("too many redirects")
	return ""
}

// push uploads blobs and then the manifest.
func (c *ollamaClient) push(tag string, raw []byte, blobs map[string][]byte) {
	c.t.Helper()
	for digest, b := range blobs {
		if resp, _ := c.do(http.MethodHead, c.url("blobs", digest), nil); resp.StatusCode == http.StatusOK {
			continue
		}
		resp, _ := c.do(http.MethodPost, c.url("blobs", "uploads", "?digest="+url.QueryEscape(digest)), nil,
			"X-Redirect-Uploads", "2", "X-Content-Length", fmt.Sprint(len(b)))
		c.expect(resp, http.StatusAccepted)
		at, err := resp.Location()
		if err != nil {
			c.t.Fatal(err)
		}
		resp, _ = c.do(http.MethodPatch, at.String(), bytes.NewReader(b), "Content-Type", "application/octet-stream",
			"Content-Range", fmt.Sprintf("0-%d", len(b)-1), "X-Redirect-Uploads", "1")
		c.expect(resp, http.StatusAccepted)
		if at, err = resp.Location(); err != nil {
			c.t.Fatal(err)
		}
		q := at.Query()
		q.Set("digest", digest)
		q.Set("etag", "0-1")
		at.RawQuery = q.Encode()
		resp, _ = c.do(http.MethodPut, at.String(), nil, "Content-Type", "application/octet-stream")
		c.expect(resp, http.StatusCreated)
	}
	resp, _ := c.do(http.MethodPut, c.url("manifests", tag), bytes.NewReader(raw), "Content-Type", dockerManifest)
	c.expect(resp, http.StatusCreated)
}

// redirecting starts a proxy before a registry that redirects blob reads to another host, as registries with separate
// blob storage do.
func redirecting(t *testing.T, host string) string {
	t.Helper()
	behind := httputil.NewSingleHostReverseProxy(&url.URL{Scheme: "http", Host: host})
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet && strings.Contains(r.URL.Path, "/blobs/sha256:") {
			http.Redirect(w, r, "http://"+host+r.URL.Path, http.StatusTemporaryRedirect)
			return
		}
		behind.ServeHTTP(w, r)
	}))
	t.Cleanup(front.Close)
	return front.Listener.Addr().String()
}

// TestOllamaClient: Ollama's client pulls what ingot pushed in the ollama encoding, and finds each tensor and file
// where it expects it. ingot pulls what that client pushes.
func TestOllamaClient(t *testing.T) {
	fronts := []registry{registries[0], registries[2],
		{"redirecting", nil, func(t *testing.T) string { return redirecting(t, startOlareg(t, true)) }}}
	for _, r := range fronts {
		for _, quantize := range []string{"", "mxfp8"} {
			t.Run(r.name+"/"+quantize, func(t *testing.T) {
				host := r.start(t)
				u := newUser(t)
				flags := []string{}
				if quantize != "" {
					flags = []string{"-q", quantize}
				}
				u.create("model", "llama-default", flags...)
				digest := u.ingot("push", "model", host+"/library/model:v1", "--format", "ollama")

				c := &ollamaClient{t, "http://" + host, "library/model"}
				raw, m, blobs := c.pull("v1")
				checkOllama(t, m, blobs, quantize)

				if r.name != "distribution" {
					// It opens an upload with a POST that has a digest and no body, which a conforming registry refuses.
					return
				}
				again := &ollamaClient{t, "http://" + host, "someone/else"}
				again.push("v2", raw, blobs)
				reader := newUser(t)
				equal(t, "pulled digest", reader.ingot("pull", host+"/someone/else:v2"), digest)
				reader.ingot("cp", host+"/someone/else:v2", "back", "--format", "modelpack")
				equal(t, "manifest after the way back", reader.manifest("back:latest"), u.manifest("model:latest"))
			})
		}
	}
}

// checkOllama reads an image as Ollama's runner does.
func checkOllama(t *testing.T, m ollamaManifest, blobs map[string][]byte, quantize string) {
	t.Helper()
	if m.SchemaVersion != 2 || m.MediaType != dockerManifest {
		t.Errorf("manifest: schema version %d, type %s", m.SchemaVersion, m.MediaType)
	}
	var config struct {
		ModelFormat  string   `json:"model_format"`
		Capabilities []string `json:"capabilities"`
		ModelFamily  string   `json:"model_family"`
		FileType     string   `json:"file_type"`
	}
	if err := json.Unmarshal(blobs[m.Config.Digest], &config); err != nil {
		t.Fatalf("config: %v", err)
	}
	equal(t, "config media type", m.Config.MediaType, "application/vnd.docker.container.image.v1+json")
	equal(t, "model format", config.ModelFormat, "safetensors")
	if !slices.Contains(config.Capabilities, "completion") {
		t.Errorf("capabilities: %v", config.Capabilities)
	}
	files, tensors := map[string]bool{}, map[string]bool{}
	for _, l := range m.Layers {
		b := blobs[l.Digest]
		switch l.MediaType {
		case ollamaJSON:
			files[l.Name] = true
			if !json.Valid(b) {
				t.Errorf("%s is not JSON", l.Name)
			}
		case ollamaTensor:
			header := safetensorsHeader(t, l.Name, b)
			if _, ok := header[l.Name]; !ok {
				t.Errorf("the blob of %s holds no tensor of this name", l.Name)
			}
			if _, ok := header[l.Name+".scale"]; ok {
				var metadata map[string]string
				if err := json.Unmarshal(header["__metadata__"], &metadata); err != nil {
					t.Fatal(err)
				}
				want := quantize
				if l.Name == "model.embed_tokens.weight" {
					want = "int8" // by the rules
				}
				equal(t, l.Name+": quant_type", metadata["quant_type"], want)
			}
			tensors[l.Name] = true
		}
	}
	for _, name := range []string{"config.json", "tokenizer.json", "tokenizer_config.json"} {
		if !files[name] {
			t.Errorf("no layer %s; there are %v", name, files)
		}
	}
	for _, name := range []string{"model.embed_tokens.weight", "model.layers.0.self_attn.q_proj.weight",
		"model.norm.weight", "lm_head.weight"} {
		if !tensors[name] {
			t.Errorf("no tensor %s", name)
		}
	}
}

// safetensorsHeader reads the header of a safetensors file without ingot's code.
func safetensorsHeader(t *testing.T, name string, b []byte) map[string]json.RawMessage {
	t.Helper()
	if len(b) < 8 || binary.LittleEndian.Uint64(b) > uint64(len(b)-8) {
		t.Fatalf("%s is not a safetensors file", name)
	}
	var header map[string]json.RawMessage
	if err := json.Unmarshal(b[8:8+binary.LittleEndian.Uint64(b)], &header); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return header
}
