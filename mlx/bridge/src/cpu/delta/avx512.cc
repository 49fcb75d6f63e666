#define INGOT_ISA avx512
#include "cpu/delta/kernels.h"
#include "cpu/delta/wkv.h"

namespace ingot::cpu {

extern const DeltaKernels delta_avx512;
const DeltaKernels delta_avx512 = {{avx512::delta<float>, avx512::delta<f16>, avx512::delta<bf16>},
                                   {avx512::scan<float>, avx512::scan<f16>, avx512::scan<bf16>},
                                   avx512::channels,
                                   {avx512::conv<float>, avx512::conv<f16>, avx512::conv<bf16>},
                                     {avx512::wkv<float>, avx512::wkv<f16>, avx512::wkv<bf16>}};

}  // namespace ingot::cpu
