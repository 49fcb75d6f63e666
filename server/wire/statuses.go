package wire

import (
	"context"
	"errors"
	"net/http"
	"syscall"

	"github.com/ingotml/ingot/chat"
	"github.com/ingotml/ingot/chat/jinja"
	"github.com/ingotml/ingot/convert/recipe"
	"github.com/ingotml/ingot/convert/source"
	"github.com/ingotml/ingot/manifest"
	"github.com/ingotml/ingot/runtime"
	"github.com/ingotml/ingot/runtime/pool"
	"github.com/ingotml/ingot/runtime/runner"
)

// ErrStopping reports that the server stops.
var ErrStopping = errors.New("the server is stopping")

// statuses maps errors of other packages to an HTTP status.
var statuses = []struct {
	is     error
	status int
}{
	{manifest.ErrNotFound, http.StatusNotFound},
	{manifest.ErrInvalidName, http.StatusBadRequest},
	{manifest.ErrNoSpace, http.StatusInsufficientStorage},
	{syscall.ENOSPC, http.StatusInsufficientStorage},
	{manifest.ErrBusy, http.StatusServiceUnavailable},
	{source.ErrSource, http.StatusBadRequest},
	{recipe.ErrRecipe, http.StatusBadRequest},
	{runtime.ErrBusy, http.StatusServiceUnavailable},
	{ErrStopping, http.StatusServiceUnavailable},
	{pool.ErrClosed, http.StatusServiceUnavailable},
	{runtime.ErrPrompt, http.StatusBadRequest},
	{runtime.ErrSampling, http.StatusBadRequest},
	{runtime.ErrPictures, http.StatusBadRequest},
	{runtime.ErrNoTokenizer, http.StatusBadRequest},
	{chat.ErrNoTemplate, http.StatusBadRequest},
	{chat.ErrTools, http.StatusBadRequest},
	{jinja.ErrRender, http.StatusBadRequest},
	{jinja.ErrInput, http.StatusBadRequest},
	{jinja.ErrLimit, http.StatusBadRequest},
	{runner.ErrDied, http.StatusInternalServerError},
	{context.DeadlineExceeded, http.StatusGatewayTimeout},
	{runtime.ErrFormat, http.StatusBadRequest},
	{runtime.ErrMemory, http.StatusBadRequest},
	{runtime.ErrDraft, http.StatusBadRequest},
	{runtime.ErrEmbedding, http.StatusBadRequest},
}
