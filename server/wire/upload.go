package wire

import (
	"io"
	"net/http"
	"time"

	"github.com/ingotml/ingot/internal/limits"
)

// Upload returns the body of a request that is a file: of any length, if it arrives fast enough, [limits.UploadStep]
// bytes within each timeout.
func Upload(w http.ResponseWriter, r *http.Request, timeout time.Duration) io.Reader {
	return &upload{w: w, r: r, body: r.Body, timeout: timeout}
}

type upload struct {
	w       http.ResponseWriter
	r       *http.Request
	body    io.Reader
	timeout time.Duration
	left    int // bytes until the deadline is extended
}

// Read implements io.Reader.
func (b *upload) Read(p []byte) (int, error) {
	if b.left <= 0 && b.r.ContentLength != 0 {
		// This fails only for a test's ResponseWriter, which has no deadlines.
		_ = http.NewResponseController(b.w).SetReadDeadline(time.Now().Add(b.timeout))
		b.left = limits.UploadStep
	}
	n, err := b.body.Read(p)
	b.left -= n
	return n, err
}
