#define INGOT_ISA avx2
#include "cpu/delta/kernels.h"
#include "cpu/delta/wkv.h"

namespace ingot::cpu {

extern const DeltaKernels delta_avx2;
const DeltaKernels delta_avx2 = {{avx2::delta<float>, avx2::delta<f16>, avx2::delta<bf16>},
                                 {avx2::scan<float>, avx2::scan<f16>, avx2::scan<bf16>},
                                 avx2::channels,
                                 {avx2::conv<float>, avx2::conv<f16>, avx2::conv<bf16>},
                                     {avx2::wkv<float>, avx2::wkv<f16>, avx2::wkv<bf16>}};

}  // namespace ingot::cpu
