// Matrix product kernels for AVX2, FMA and F16C.
#define INGOT_ISA avx2
#include "cpu_simd.h"

#include "cpu_small_batch_avx2.h"
#include "cpu_vector_avx2.h"
#include "cpu_matmul_x86.h"

namespace ingot::cpu {

extern const MatmulKernels matmul_avx2;
const MatmulKernels matmul_avx2 = avx2::kMatmul;

}  // namespace ingot::cpu
