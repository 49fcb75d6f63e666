package limits

// Limits of pictures.
const (
	// Pictures bounds those of a request.
	Pictures = 64
	// PicturePixels bounds a picture, as it is stored and as it is resized.
	PicturePixels = 1 << 26
	// PictureAspect bounds how many times longer than the other a side of a picture may be.
	PictureAspect = 200
	// PictureScans bounds a JPEG's passes over the picture: few bytes can ask for many.
	PictureScans = 100
	// PictureMemory bounds the memory of all pictures that a model's process decodes at a time. One that alone takes more
	// is refused.
	PictureMemory = 1 << 30
)

func init() {
	const header = "vision.TestReadRefuses"
	register(
		Limit{"Pictures", "pictures of a request", Pictures, Count, "server.TestManyOfAnything"},
		Limit{"PicturePixels", "pixels of a picture", PicturePixels, Pixels, header},
		Limit{"PictureAspect", "longer side of a picture, by the shorter one", PictureAspect, Count, header},
		Limit{"PictureScans", "scans of a JPEG", PictureScans, Count, header},
		Limit{"PictureMemory", "pictures that a model's process decodes at a time", PictureMemory, Bytes,
			"runtime/batch.TestPictureMemory"},
	)
}
