/* AutoHBW: placing of allocations switched off and on by the program. Link with -lautohbw, or preload libautohbw.so. */
#ifndef AUTOHBW_API_H
#define AUTOHBW_API_H

#ifdef __cplusplus
extern "C" {
#endif

/* Allocations of the sizes in AUTO_HBW_SIZE are placed, as from the start. */
void enableAutoHBW(void);

/* No allocation is placed until enableAutoHBW(). What is placed already stays where it is. For all threads. */
void disableAutoHBW(void);

#ifdef __cplusplus
}
#endif

#endif
