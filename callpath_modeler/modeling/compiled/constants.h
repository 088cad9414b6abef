/* Numbers of mixture/evidence.py that bounds and evidence have in common. */
#ifndef CALLPATH_MODELER_CONSTANTS_H
#define CALLPATH_MODELER_CONSTANTS_H

#define LOG_2PI 1.8378770664093453
#define LOG_2 0.69314718055994531
#define TINY 1e-300
#define SHARE_EDGE 1e-3
#define LEAST_LEVEL 0.05

#endif
