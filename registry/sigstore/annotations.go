package sigstore

// Annotations of the manifests that hold bundles and statements.
const (
	// As cosign v3.1.3 writes them (pkg/oci/remote/write.go). cosign adds a date, which is left out here, so that signing
	// again gives the same manifest.
	AnnotationContent   = "dev.sigstore.bundle.content"
	AnnotationPredicate = "dev.sigstore.bundle.predicateType"
	// AnnotationStatement is the predicate type of a statement that is not signed, as BuildKit annotates them.
	AnnotationStatement = "in-toto.io/predicate-type"
)

// PredicateOf returns the predicate type that the annotations of a manifest name, or "". Nothing verifies it.
func PredicateOf(annotations map[string]string) string {
	if t := annotations[AnnotationPredicate]; t != "" {
		return t
	}
	return annotations[AnnotationStatement]
}
