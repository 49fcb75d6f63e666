package offline

import (
	"errors"
	"io"
	"mime/multipart"
	"net/http"
	"strconv"

	"github.com/ingotml/ingot/server"
	"github.com/ingotml/ingot/server/wire"
)

// upload is POST /v1/files: it stores a file of requests, which comes in a form.
func (s *api) upload(w http.ResponseWriter, r *http.Request) error {
	select {
	case s.uploads <- struct{}{}:
		defer func() { <-s.uploads }()
	default:
		return wire.Errorf(http.StatusServiceUnavailable,
			"%d files are being uploaded, which is the limit; upload this one again later", cap(s.uploads))
	}
	owner := server.Owner(r.Context())
	left, err := s.room(owner)
	if err != nil {
		return err
	}
	r.Body = http.MaxBytesReader(w, io.NopCloser(wire.Upload(w, r, s.core.BodyTimeout())), s.most.file+formExtra)
	form, err := r.MultipartReader()
	if err != nil {
		return wire.BadRequest("the body must be a form, multipart/form-data, with the parts purpose and file")
	}
	u, err := s.store.begin(owner, min(s.most.file, left))
	if err != nil {
		return err
	}
	defer u.abort()
	values := map[string]string{}
	name, found := "", false
	for {
		part, err := form.NextPart()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return formError(err)
		}
		if part.FormName() != "file" {
			if values[part.FormName()], err = formValue(part); err != nil {
				return err
			}
			continue
		}
		if found {
			return wire.BadParam("file", "there are several; upload one at a time")
		}
		name, found = wire.Clip(part.FileName()), true
		if _, err := io.Copy(u, part); errors.Is(err, errTooLarge) {
			return wire.Errorf(http.StatusRequestEntityTooLarge, "file: it has more than %d bytes, which is what a file may "+
				"have, or what the other files of the key leave; divide it, or delete others", u.most)
		} else if err != nil {
			return formError(err)
		}
	}
	life, err := fileLife(values)
	switch {
	case err != nil:
		return err
	case !found:
		return wire.BadParam("file", "missing from the form")
	case values["purpose"] != purposeInput:
		return wire.BadParam("purpose", "%s is not batch, the only purpose of files here", quoted(values["purpose"]))
	case u.size == 0:
		return wire.BadParam("file", "it is empty")
	}
	x, err := u.keep(s.store.newID("file-"), name, purposeInput, life)
	if err != nil {
		return err
	}
	return wire.WriteJSON(w, x)
}

// formExtra is what a form may have beside its file.
const formExtra = 64 << 10

// formValue returns the text of a part that is not a file.
func formValue(part *multipart.Part) (string, error) {
	const most = 1 << 10
	b, err := io.ReadAll(io.LimitReader(part, most+1))
	if err != nil {
		return "", formError(err)
	}
	if len(b) > most {
		return "", wire.BadParam(wire.Clip(part.FormName()), "it has more than %d bytes", most)
	}
	return string(b), nil
}

// formError turns a form that is not one, or ends early, into a client error.
func formError(err error) error {
	var large *http.MaxBytesError
	if errors.As(err, &large) || !errors.Is(err, io.ErrUnexpectedEOF) && !errors.Is(err, multipart.ErrMessageTooLarge) {
		return err
	}
	return wire.BadRequest("the form is incomplete: the connection ended early, or its last boundary is missing")
}

// fileLife returns after how many seconds the client wants a file to be deleted; 0: never.
func fileLife(values map[string]string) (int64, error) {
	anchor, seconds := values["expires_after[anchor]"], values["expires_after[seconds]"]
	if anchor == "" && seconds == "" {
		return 0, nil
	}
	n, err := strconv.ParseInt(seconds, 10, 64)
	if err != nil {
		n = 0
	}
	return n, (&expiresAfter{anchor, n}).check("expires_after")
}

// Bounds of the life of files, those of OpenAI's API.
const (
	leastLife = 3600
	mostLife  = 30 * 24 * 3600
)

func (e *expiresAfter) check(name string) error {
	if e.Anchor != "created_at" {
		return wire.BadParam(name+".anchor", "%s is not created_at", quoted(e.Anchor))
	}
	if e.Seconds < leastLife || e.Seconds > mostLife {
		return wire.BadParam(name+".seconds", "must be between %d and %d", leastLife, mostLife)
	}
	return nil
}

func quoted(s string) string {
	if s == "" {
		return "nothing"
	}
	return wire.Clip(s)
}

// room returns how many bytes an owner's further files may have.
func (s *api) room(owner string) (int64, error) {
	list, err := s.store.files(owner)
	if err != nil {
		return 0, err
	}
	left := s.most.space
	for _, x := range list {
		left -= x.Bytes
	}
	if len(list) >= s.most.files || left <= 0 {
		return 0, wire.BadRequest("the key has %d files with %d bytes, and may have %d with %d: delete some first", len(list),
			s.most.space-left, s.most.files, s.most.space)
	}
	return left, nil
}
