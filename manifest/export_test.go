package manifest

// The parts of the package that its external tests use.
const (
	AnnotationCapabilities  = annotationCapabilities
	AnnotationContextLength = annotationContextLength
	MaxPathLen              = maxPathLen
	MaxTagLen               = maxTagLen
)
