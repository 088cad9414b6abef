/* Number of the library of these sources that suits this processor; clusters have several kinds
   of nodes. */
#include <stdint.h>

/* 0 = any processor, 1 = Haswell and similar (AVX2, FMA), 2 = Skylake and similar (AVX-512). */
int64_t processor(void)
{
#if defined(__x86_64__) && defined(__GNUC__)
    __builtin_cpu_init();
    if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma"))
        return 0;
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq")
        && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl")
        && __builtin_cpu_supports("avx512cd"))
        return 2;
    return 1;
#else
    return 0;
#endif
}
